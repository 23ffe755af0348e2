package rows

import (
	"fmt"

	"interlock/internal/bench"
	"interlock/internal/sandbox"
)

// All are the rows in the order of their goals.
func All() []bench.Row {
	var all []bench.Row
	for _, some := range [][]bench.Row{durable(), rivals(), certain(), runs(), source(), recovery(), starts()} {
		all = append(all, some...)
	}
	return all
}

// durable are the writes of the store against what nothing durable can be faster than.
func durable() []bench.Row {
	rows := []bench.Row{{
		ID: "G6", What: "grant, renew, release: 1 client", Sides: []bench.Side{self("ours", "leases", 1), self("append", "lease-log", 1)},
		Bounds: []bench.Bound{{Figure: "p50", Of: "append", Goal: bench.AtMost(1.5)}},
	}}
	for clients, least := range map[int]float64{64: 0.5, 256: 0.4} {
		rows = append(rows, bench.Row{
			ID: "G7", What: fmt.Sprintf("grant, renew, release: %d clients", clients),
			Sides: []bench.Side{self("ours", "leases", clients), self("group log", "lease-log", clients)},
			Bounds: []bench.Bound{
				{Figure: "rate", Of: "group log", Goal: bench.AtLeast(least)},
				{Figure: "p99", Of: "group log", Goal: bench.AtMost(1.5)},
			},
		})
	}
	return rows
}

// rivals are the same writes against those who keep leases too.
func rivals() []bench.Row {
	return []bench.Row{{
		ID: "G8", What: "grant, renew, release: 64 clients",
		Sides: []bench.Side{self("ours", "leases", 64), rival("etcd txn", "etcd-txn", 64), rival("etcd lease, put", "etcd-lease", 64), rival("SQLite, one each", "sqlite", 64)},
		Bounds: []bench.Bound{
			{Figure: "rate", Of: "etcd txn", Goal: bench.AtLeast(1.3)},
			{Figure: "rate", Of: "etcd lease, put", Goal: bench.AtLeast(2)},
			{Figure: "rate", Of: "SQLite, one each", Goal: bench.AtLeast(10)},
			{Figure: "peak", Goal: bench.AtMost(40 << 20), Worst: true},
		},
	}}
}

// certain are fairness and durability.
func certain() []bench.Row {
	return []bench.Row{
		{
			ID: "G9", What: "4 processes of 64 clients each", Sides: []bench.Side{fleet(4, 64)},
			Bounds: []bench.Bound{
				{Figure: "p99", Of: "ours", Base: "p50", Goal: bench.AtMost(10)},
				{Figure: "max", Goal: bench.AtMost(0.25), Worst: true},
				{Figure: "share", Worst: true},
			},
		},
		{
			ID: "G10", What: "killed while it writes", Sides: []bench.Side{kills(40)},
			Bounds: []bench.Bound{
				{Figure: "kills"},
				{Figure: "lost", Goal: bench.AtMost(0), Worst: true},
				{Figure: "unsynced", Goal: bench.AtMost(0), Worst: true},
			},
		},
	}
}

// runs are what is done with them.
func runs() []bench.Row {
	return []bench.Row{
		{
			ID: "G12", What: "runs claimed and completed, no step: 64 at once",
			Sides:  []bench.Side{self("ours", "runs", 64), rival("River on SQLite", "river", 64)},
			Bounds: []bench.Bound{{Figure: "rate", Of: "River on SQLite", Goal: bench.AtLeast(5)}},
		},
		{
			ID: "G13", What: "one checkpointed step: 1 client",
			Sides: []bench.Side{self("ours", "steps", 1), self("append", "step-log", 1)},
			Bounds: []bench.Bound{
				{Figure: "transactions", Goal: bench.AtMost(1), Worst: true},
				{Figure: "p50", Of: "append", Goal: bench.AtMost(1.5)},
			},
		},
		{
			ID: "G13", What: "checkpointed steps of 1000 runs at once",
			Sides:  []bench.Side{self("ours", "steps", 1000), self("group log", "step-log", 1000)},
			Bounds: []bench.Bound{{Figure: "rate", Of: "group log", Goal: bench.AtLeast(0.4)}},
		},
	}
}

// recovery is what a crash costs.
func recovery() []bench.Row {
	return []bench.Row{
		{
			ID: "G18", What: "SIGKILL to first durable grant: 1000 live runs, 10 MiB of log",
			Sides: []bench.Side{afterKill("ours", "heir", 5), afterKill("bare open", "bare", 5)},
			Bounds: []bench.Bound{
				{Figure: "p50", Goal: bench.AtMost(0.060)},
				{Figure: "p50", Of: "bare open"},
				{Figure: "p99", Of: "bare open", Goal: bench.AtMost(3), Or: bench.AtMost(0.150)},
			},
		},
		{
			ID: "G19", What: "dead holder, its run resumed by the same command", Sides: []bench.Side{resumed(6)},
			Bounds: []bench.Bound{{Figure: "p50", Goal: bench.AtMost(0.100)}},
			Note:   "from the kill, with the start of the process; River waits 1 h, DBOS 60 s, Kubernetes 15 s",
		},
	}
}

// starts are what it costs to begin.
func starts() []bench.Row {
	return []bench.Row{
		{
			ID: "G23", What: "what level landlock adds to a start", Sides: []bench.Side{confined(sandbox.Landlock, 10), bubblewrap(10)},
			Bounds: []bench.Bound{
				{Figure: "adds", Goal: bench.AtMost(0.002)},
				{Figure: "adds", Of: "bubblewrap", Goal: bench.AtMost(0.5)},
			},
		},
		{
			ID: "G23", What: "what level full adds to a start", Sides: []bench.Side{confined(sandbox.Full, 10), bubblewrap(10)},
			Bounds: []bench.Bound{{Figure: "adds", Of: "bubblewrap"}},
			Note:   "level full is bubblewrap and our own stage: it cannot cost less than bubblewrap",
		},
		{
			ID: "G24", What: "interlock version", Sides: version(30),
			Bounds: []bench.Bound{{Figure: "p50", Of: "empty Go program", Goal: bench.AtMost(3.5)}},
		},
		{
			ID: "G24", What: "the program; one that waits for its agent", Sides: []bench.Side{footprint()},
			Bounds: []bench.Bound{
				{Figure: "size", Goal: bench.AtMost(25 << 20)},
				{Figure: "resident", Goal: bench.AtMost(30 << 20), Worst: true},
			},
		},
		{
			ID: "G24", What: "a process that keeps 1000 live runs", Sides: []bench.Side{self("ours", "kept", 1000)},
			Bounds: []bench.Bound{{Figure: "resident", Worst: true}},
		},
	}
}
