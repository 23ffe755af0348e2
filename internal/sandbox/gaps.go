package sandbox

// Gap is something that level Landlock does not stop and level Full does.
type Gap struct {
	What  string `json:"what"`
	Bound string `json:"bound"`           // how far it goes
	Until int    `json:"until,omitempty"` // the Landlock ABI that stops it; 0: none does
}

// Gaps is the whole table. A test tries each row for real at level Landlock: a row that is stopped
// must go, and what is not stopped must have one.
var Gaps = []Gap{
	{"connect to sockets that have a path: docker, ssh-agent, D-Bus", "sockets that the operator's account may write to", 9},
	{"reach abstract sockets of the host", "sockets that ask for no more than to be reached", 6},
	{"signal processes outside of its tree", "processes of the operator's account", 6},
	{"change mode, owner, times and extended attributes of files anywhere", "files that the operator's account owns; not what is in them", 0},
	{"see that a file is there, its size, times and owner, and where a link leads", "directories that the operator's account may pass; not what is in files, not the names in a directory", 0},
	{"watch files and directories for being used (inotify)", "what the operator's account may read", 0},
	{"see other processes, their command lines and how many files they have open", "the machine; not their environment, their memory and what is open", 0},
	{"change limits, priority and processors of processes outside of its tree", "processes of the operator's account", 0},
	{"share System V memory, semaphores and queues with processes outside of its tree", "what the operator's account may open", 0},
	{"send and receive UDP, and every other network of the host: it cannot be taken away", "what the host can reach", 0},
}

// GapsAt are the rows that hold where the kernel has this Landlock ABI.
func GapsAt(abi int) []Gap {
	var out []Gap
	for _, g := range Gaps {
		if g.Until == 0 || abi < g.Until {
			out = append(out, g)
		}
	}
	return out
}
