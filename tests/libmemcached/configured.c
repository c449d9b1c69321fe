// What an application that links libmemcached has: for each string on standard input, its servers, or
// `refused`; then the server of each key of the file that is named. A string is a line; keys are separated
// by spaces.
#include <libmemcached/memcached.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char keys[1 << 16];

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  FILE* file = fopen(argv[1], "r");
  const size_t read = file == NULL ? 0 : fread(keys, 1, sizeof keys - 1, file);
  keys[read] = '\0';
  char* line = NULL;
  size_t room = 0;
  for (ssize_t size; (size = getline(&line, &room, stdin)) > 0;) {
    memcached_st* client = memcached(line, (size_t)size - 1);
    const uint32_t count = client == NULL ? 0 : memcached_server_count(client);
    if (client == NULL) printf("refused");
    for (uint32_t i = 0; i < count; ++i) {
      const memcached_instance_st* server = memcached_server_instance_by_position(client, i);
      const char* name = memcached_server_name(server);
      if (name[0] == '/') printf("unix:%s ", name);
      if (name[0] != '/') printf("%s:%u ", name, (unsigned)memcached_server_port(server));
    }
    printf("|");
    char* copy = strdup(keys);
    for (char *at = copy, *key; count > 0 && (key = strsep(&at, " ")) != NULL;) {
      printf("%u ", memcached_generate_hash(client, key, strlen(key)));
    }
    free(copy);
    printf("\n");
    if (client != NULL) memcached_free(client);
  }
  return 0;
}
