/* The floor of a cold `counter incr`: the least a process must do for the same round trip and the same answer.
 *   floor SOCKET_PATH KEY     incr KEY by 1, creating it as 1; prints the new value
 * Built -O2 -static: no dynamic loading, no option parsing, no error handling beyond giving up. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char* second_line(const char* text) {
  const char* end = strstr(text, "\r\n");
  return end == NULL ? NULL : end + 2;
}

int main(int count, char** words) {
  if (count != 3) return 64;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path, words[1], sizeof address.sun_path - 1);
  const int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(server, (struct sockaddr*)&address, sizeof address) != 0) return 69;
  char text[512];
  const int size = snprintf(text, sizeof text, "ma %s N0 J1 D1 v\r\n", words[2]);
  if (write(server, text, (size_t)size) != size) return 69;
  const ssize_t got = read(server, text, sizeof text - 1);
  if (got <= 0) return 69;
  text[got] = 0;
  const char* value = second_line(text);
  if (value == NULL) return 69;
  return write(STDOUT_FILENO, value, strcspn(value, "\r")) < 0;
}
