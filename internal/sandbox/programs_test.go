package sandbox_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"interlock/internal/sandbox"
	"interlock/internal/toolchain"
)

// programs are real ones, each with work of its kind. What is not installed is left out.
var programs = []struct{ name, script, want string }{
	{"sh", `f() { echo sub; }; x=$(f | tr a-z A-Z); (sleep 0.01 & wait); echo "sh $x"`, "sh SUB"},
	{"git", `git init -q r && cd r && echo a > a && git add . && git commit -qm a && git checkout -qb b && git gc -q && git log --oneline | wc -l`, "1"},
	{"gcc", `printf '#include <pthread.h>\n#include <stdio.h>\nvoid*f(void*x){puts("gcc works");return 0;}int main(){pthread_t t;pthread_create(&t,0,f,0);return pthread_join(t,0);}' > c.c && gcc -pthread -o c c.c && ./c`, "gcc works"},
	{"go", `mkdir m && cd m && go mod init m && printf 'package m\nfunc F() int { return 1 }\n' > m.go && go build -v . && gofmt -l . && go list -f '{{.Name}} works' .`, "m works"},
	{"node", `printf 'const cp=require("child_process"),fs=require("fs"),os=require("os"),{Worker}=require("worker_threads");fs.promises.writeFile("n","x").then(()=>{fs.watch(".").close();os.networkInterfaces();new Worker("1",{eval:true}).on("exit",()=>console.log("node",cp.execSync("echo works").toString()))})' > n.js && node n.js`, "node works"},
	{"npm", `printf '{"name":"x","version":"1.0.0","scripts":{"t":"echo npm works"}}' > package.json && npm run --silent t`, "npm works"},
	{"python3", `python3 -c 'import subprocess,threading,socket,tempfile,os,asyncio
async def f(): return (await (await asyncio.create_subprocess_exec("echo","works",stdout=-1)).communicate())[0]
t=threading.Thread(target=lambda:None);t.start();t.join()
with tempfile.TemporaryFile() as x: x.write(b"x")
print("python3",asyncio.run(f()).decode())'`, "python3 works"},
	{"strace", `strace -f -o trace sh -c 'true | true' && grep -c execve trace`, ""},
	{"gdb", `printf 'int main(){int x=41;return x+1;}' > g.c && gcc -g -o g g.c && gdb -q -batch -ex 'break main' -ex run -ex 'print x' -ex kill ./g`, "Breakpoint 1, main"},
}

// TestProgramsWork: the filter and the rules are not in the way of what agents and checks do.
func TestProgramsWork(t *testing.T) {
	t.Parallel()
	tools, path := toolchain.Find(t.Context(), os.Environ())
	for _, level := range []sandbox.Level{sandbox.Full, sandbox.Landlock} {
		for _, program := range programs {
			t.Run(string(level)+"/"+program.name, func(t *testing.T) {
				t.Parallel()
				if _, err := exec.LookPath(program.name); err != nil {
					t.Skipf("%s is not installed", program.name)
				}
				p := newPlace(t, need(t, level), level, program.script)
				p.spec.Policy.Tools = tools
				p.spec.Policy.Env = toolchain.Env(os.Environ(), level, p.room, path)
				if r, out := p.run(); r.Exit != 0 || !strings.Contains(out, program.want) {
					t.Errorf("%+v:\n%s", r, out)
				}
			})
		}
	}
}
