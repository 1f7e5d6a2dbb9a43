// The first process of every pod. It keeps the pod's namespaces and reaps orphaned processes.
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int signal) {
  (void)signal;
  _exit(0);
}

static void reap(int signal) {
  (void)signal;
  while (waitpid(-1, NULL, WNOHANG) > 0) {
  }
}

int main(void) {
  struct sigaction ends = {.sa_handler = end}, reaps = {.sa_handler = reap, .sa_flags = SA_NOCLDSTOP};
  if (sigaction(SIGTERM, &ends, NULL) || sigaction(SIGINT, &ends, NULL) || sigaction(SIGCHLD, &reaps, NULL))
    return EXIT_FAILURE;
  for (;;)
    pause();
}
