"""Types to a shell on a pseudo-terminal, as expect does, and stops, resumes and interrupts its jobs."""

import fcntl
import os
import pty
import struct
import sys
import termios
import time

REST_S = float(sys.argv[1])
JOB = b"sh -c 'echo u''p; exec sleep 100'\n"
heard = b""


def expect(*texts: bytes) -> None:
    """Wait until the shell has said each of TEXTS, in this order."""
    global heard
    for text in texts:
        while text not in heard:
            heard += os.read(master, 4096)
        heard = heard.split(text, 1)[1]
    time.sleep(REST_S)


shell, master = pty.fork()
if shell == 0:
    os.execv("/bin/bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"])
os.write(master, b"stty -echo; PS1='re''ady> '\n")
expect(b"ready> ")
for n in range(4):
    os.write(master, b"echo $((%d * %d)) done\n" % (n, n))
    expect(b"%d done" % (n * n), b"ready> ")
os.write(master, JOB)
expect(b"up")
os.write(master, b"\x03")
expect(b"ready> ")
os.write(master, b"echo $?\n")
expect(b"130", b"ready> ")
os.write(master, JOB)
expect(b"up")
os.write(master, b"\x1a")
expect(b"Stopped", b"ready> ")
os.write(master, b"fg\n")
expect(b"sleep 100")
while os.tcgetpgrp(master) == shell:
    time.sleep(0.01)
os.write(master, b"\x1c")
expect(b"Quit", b"ready> ")
fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 44, 0, 0))
os.write(master, b"stty size; tty > /dev/null && echo it is one\n")
expect(b"33 44", b"it is one", b"ready> ")
os.write(master, b"exit 3\n")
print(os.waitstatus_to_exitcode(os.waitpid(shell, 0)[1]))
