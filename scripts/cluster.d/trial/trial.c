// The program of the pods of scripts/cluster-check.
//   trial serve PORT        an HTTP server that responds with its host name
//   trial get HOST PORT     prints the response of a server; fails unless the status is 200
//   trial eat MIB           allocates so much memory, then waits
//   trial wait              waits
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int fail(const char *what) {
  perror(what);
  return EXIT_FAILURE;
}

static int serve(const char *port) {
  int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(port))};
  if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
      bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 16))
    return fail(port);
  printf("serving on %s\n", port);
  fflush(stdout);
  for (;;) {
    char host[256] = "", asked[4096];
    int peer = accept(listener, NULL, NULL);
    if (peer < 0)
      continue;
    gethostname(host, sizeof host - 1);
    if (read(peer, asked, sizeof asked) > 0)
      dprintf(peer, "HTTP/1.0 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(host), host);
    close(peer);
  }
}

static int get(const char *host, const char *port) {
  struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;
  int error = getaddrinfo(host, port, &hints, &found);
  if (error) {
    fprintf(stderr, "%s: %s\n", host, gai_strerror(error));
    return EXIT_FAILURE;
  }
  int peer = socket(AF_INET, SOCK_STREAM, 0);
  if (peer < 0 || connect(peer, found->ai_addr, found->ai_addrlen))
    return fail(host);
  dprintf(peer, "GET / HTTP/1.0\r\n\r\n");
  char said[4096] = "";
  size_t length = 0;
  for (ssize_t got; length < sizeof said - 1 && (got = read(peer, said + length, sizeof said - 1 - length)) > 0;)
    length += (size_t)got;
  char *body = strstr(said, "\r\n\r\n");
  if (strncmp(said, "HTTP/1.0 200", 12) || !body)
    return EXIT_FAILURE;
  puts(body + 4);
  return EXIT_SUCCESS;
}

static int eat(const char *mebibytes) {
  size_t size = (size_t)atoi(mebibytes) << 20;
  char *memory = malloc(size);
  if (!memory)
    return fail(mebibytes);
  memset(memory, 1, size);
  pause();
  return memory[size - 1];
}

static void end(int signal) {
  (void)signal;
  _exit(EXIT_SUCCESS);
}

int main(int count, char **words) {
  // The first process of a container ignores SIGTERM unless it has a handler.
  signal(SIGTERM, end);
  const char *mode = count > 1 ? words[1] : "";
  if (!strcmp(mode, "serve") && count == 3)
    return serve(words[2]);
  if (!strcmp(mode, "get") && count == 4)
    return get(words[2], words[3]);
  if (!strcmp(mode, "eat") && count == 3)
    return eat(words[2]);
  if (!strcmp(mode, "wait"))
    return pause();
  fprintf(stderr, "trial: unknown arguments\n");
  return 2;
}
