/* The limit of a batch: one connection, commands pipelined by hand, every reply checked.
 *   pipeline SOCKET_PATH KIND NUMBER [KEYS]     KIND: set incr append ma mgma get; prints the seconds it took
 * Keys are n1 … nNUMBER with values of 8 bytes, for get also the first NUMBER lines of the file KEYS, whatever their
 * values; get asks for 60 keys at a time. Exits 1 at the first wrong reply. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { window = 1 << 17, keys_of_a_get = 60 };

struct kind {
  const char* name;
  const char* format; /* of one command; its number twice at most */
  int lines;          /* of its reply */
  const char* starts; /* each line's first letters */
};

static const struct kind kinds[] = {{"set", "set n%ld 0 0 8\r\n12345678\r\n", 1, "S"},
                                    {"incr", "incr n%ld 1\r\n", 1, "0123456789"},
                                    {"append", "append n%ld 0 0 8\r\n12345678\r\n", 1, "S"},
                                    {"ma", "ma n%ld N0 J1 D1 v\r\n", 2, "V0123456789"},
                                    {"mgma", "mg n%ld\r\nma n%ld N0 J1 D1 v\r\n", 3, "EHV0123456789"},
                                    {"get", NULL, 0, "VE0123456789"}};

static int connect_to(const char* path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  const int server = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
  return connect(server, (struct sockaddr*)&address, sizeof address) == 0 ? server : -1;
}

/* The keys of a file, one behind the other with their zeros; NULL: n1, n2 … */
static const char* keys;

static int read_keys(const char* path, long number) {
  FILE* file = fopen(path, "r");
  if (file == NULL) return 0;
  char* at = malloc((size_t)number * 256);
  keys = at;
  for (long i = 0; i < number; ++i, at += strlen(at) + 1) {
    if (fgets(at, 256, file) == NULL) return 0;
    at[strcspn(at, "\n")] = '\0';
  }
  return fclose(file) == 0;
}

static size_t put_key(char* out, long number) {
  if (keys == NULL) return (size_t)sprintf(out, " n%ld", number);
  const size_t size = strlen(keys);
  *out = ' ';
  memcpy(out + 1, keys, size);
  keys += size + 1;
  return size + 1;
}

static size_t put(char* out, const struct kind* kind, long* next, long number) {
  if (kind->format != NULL) {
    const long key = (*next)++;
    return (size_t)sprintf(out, kind->format, key, key);
  }
  size_t size = (size_t)sprintf(out, "get");
  for (int i = 0; i < keys_of_a_get && *next <= number; ++i) size += put_key(out + size, (*next)++);
  return size + (size_t)sprintf(out + size, "\r\n");
}

/* Lines read so far of `expected`; -1: not what was asked for. */
static long check(const struct kind* kind, const char* bytes, size_t size, int* at_start) {
  long lines = 0;
  for (size_t i = 0; i < size; ++i) {
    if (*at_start && strchr(kind->starts, bytes[i]) == NULL) return -1;
    *at_start = bytes[i] == '\n';
    lines += *at_start;
  }
  return lines;
}

int main(int count, char** words) {
  if (count != 4 && count != 5) return 64;
  const struct kind* kind = kinds;
  while (kind < kinds + sizeof kinds / sizeof *kinds && strcmp(kind->name, words[2]) != 0) ++kind;
  if (kind == kinds + sizeof kinds / sizeof *kinds) return 64;
  const long number = atol(words[3]);
  if (count == 5 && !read_keys(words[4], number)) return 66;
  const int server = connect_to(words[1]);
  if (server < 0) return 69;
  const long gets = (number + keys_of_a_get - 1) / keys_of_a_get;
  const long expected = kind->format != NULL ? number * kind->lines : number * 2 + gets;
  static char out[window + 60 * 256], in[window];
  size_t filled = 0, sent = 0;
  long next = 1, lines = 0;
  int at_start = 1;
  struct timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  while (lines < expected) {
    if (sent == filled) sent = filled = 0;
    while (next <= number && filled < window) filled += put(out + filled, kind, &next, number);
    struct pollfd wait = {server, (short)(POLLIN | (sent < filled ? POLLOUT : 0)), 0};
    if (poll(&wait, 1, 5000) <= 0) return 69;
    if (wait.revents & POLLOUT) {
      const ssize_t size = send(server, out + sent, filled - sent, MSG_NOSIGNAL);
      if (size > 0) sent += (size_t)size;
    }
    const ssize_t size = recv(server, in, sizeof in, 0);
    if (size == 0 || (size < 0 && errno != EAGAIN)) return 69;
    const long read = size > 0 ? check(kind, in, (size_t)size, &at_start) : 0;
    if (read < 0) return 1;
    lines += read;
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  printf("%.6f\n", (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9);
  return 0;
}
