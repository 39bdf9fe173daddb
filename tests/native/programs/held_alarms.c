/* An interval timer whose signal waits, blocked.  It makes "sent" when it does, and takes five of them when "take" is there. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

int main(void)
{
    struct itimerval often = {{0, 10000}, {0, 10000}};
    sigset_t set, pending;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    do
        sigpending(&pending);
    while (!sigismember(&pending, SIGALRM));
    close(open("sent", O_CREAT | O_WRONLY, 0600));
    while (access("take", F_OK))
        usleep(1000);
    for (int i = 0, got; i < 5; i++)
        printf("%d\n", sigwait(&set, &got) ? 0 : got == SIGALRM);
    return 0;
}
