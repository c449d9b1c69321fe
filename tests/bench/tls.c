/* What TLS costs a client of OpenSSL that does no more than it must: the server's certificate is verified, every reply checked.
 *   tls PORT CA cold KEY       incr KEY by 1, creating it as 1; prints the new value
 *   tls PORT CA KIND NUMBER    KIND: set incr, NUMBER commands pipelined by hand, n1 … nNUMBER; prints the seconds it took
 * The server is 127.0.0.1. Exits 1 at the first wrong reply. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* One record, of whole commands: memcached 1.6.18 may wait for more with half of what it decrypted unread. */
enum { window = 16 * 1024 };

static int connect_to(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
  inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
  const int server = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return connect(server, (struct sockaddr*)&address, sizeof address) == 0 ? server : -1;
}

static SSL* shake_hands(int server, const char* ca) {
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (SSL_CTX_load_verify_file(context, ca) != 1) return NULL;
  SSL* session = SSL_new(context);
  SSL_set_fd(session, server);
  SSL_set1_host(session, "127.0.0.1");
  return SSL_connect(session) == 1 ? session : NULL;
}

static int cold(SSL* session, const char* key) {
  char text[512];
  const int size = snprintf(text, sizeof text, "ma %s N0 J1 D1 v\r\n", key);
  if (SSL_write(session, text, size) != size) return 69;
  const int got = SSL_read(session, text, sizeof text - 1);
  if (got <= 0) return 69;
  text[got] = 0;
  const char* line_end = strstr(text, "\r\n");
  if (line_end == NULL) return 1;
  return write(STDOUT_FILENO, line_end + 2, strcspn(line_end + 2, "\r")) < 0;
}

static int pipelined(SSL* session, int server, const char* kind, long number) {
  const int sets = strcmp(kind, "set") == 0;
  static char out[window], in[window];
  size_t filled = 0, sent = 0;
  long next = 1, lines = 0;
  int at_start = 1;
  while (lines < number) {
    if (sent == filled) sent = filled = 0;
    for (; sent == 0 && next <= number && filled < window - 64; ++next)
      filled +=
          (size_t)sprintf(out + filled, sets ? "set n%ld 0 0 8\r\n12345678\r\n" : "incr n%ld 1\r\n", next);
    struct pollfd wait = {server, (short)(POLLIN | (sent < filled ? POLLOUT : 0)), 0};
    if (SSL_pending(session) == 0 && poll(&wait, 1, 5000) <= 0) return 69;
    if (wait.revents & POLLOUT) {
      const int size = SSL_write(session, out + sent, (int)(filled - sent));
      if (size > 0)
        sent += (size_t)size;
      else if (SSL_get_error(session, size) != SSL_ERROR_WANT_WRITE)
        return 69;
    }
    const int size = SSL_read(session, in, sizeof in);
    if (size <= 0 && SSL_get_error(session, size) != SSL_ERROR_WANT_READ) return 69;
    for (int i = 0; i < size; ++i) {
      if (at_start && (sets ? in[i] != 'S' : in[i] < '0' || in[i] > '9')) return 1;
      at_start = in[i] == '\n';
      lines += at_start;
    }
  }
  return 0;
}

int main(int count, char** words) {
  if (count != 5) return 64;
  const int server = connect_to(atoi(words[1]));
  if (server < 0) return 69;
  SSL* session = shake_hands(server, words[2]);
  if (session == NULL) return 77;
  if (strcmp(words[3], "cold") == 0) return cold(session, words[4]);
  int on = 1;
  if (ioctl(server, FIONBIO, &on) != 0) return 69;
  struct timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  const int status = pipelined(session, server, words[3], atol(words[4]));
  clock_gettime(CLOCK_MONOTONIC, &end);
  printf("%.6f\n", (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9);
  return status;
}
