// apr_memcache of apr-util: hash=crc32.
#include <apr_general.h>
#include <apr_memcache.h>
#include <apr_strings.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(apr_status_t status, const char* what) {
  char text[200];
  if (status == APR_SUCCESS) return;
  fprintf(stderr, "%s: %s\n", what, apr_strerror(status, text, sizeof text));
  exit(1);
}

int main(int count, char** arguments) {
  apr_pool_t* pool;
  apr_memcache_t* client;
  apr_initialize();
  apr_pool_create(&pool, NULL);
  must(apr_memcache_create(pool, 16, 0, &client), "create");
  if (count > 2 && strcmp(arguments[2], "hash=crc32") == 0) client->hash_func = apr_memcache_hash_crc32;
  char* servers = apr_pstrdup(pool, arguments[1]);
  for (char* word; (word = strsep(&servers, " ")) != NULL;) {
    apr_memcache_server_t* server;
    const char* host = strsep(&word, "|");
    must(apr_memcache_server_create(pool, host, (apr_port_t)atoi(strsep(&word, "|")), 0, 1, 1, 60, &server),
         host);
    must(apr_memcache_add_server(client, server), host);
  }
  char line[1024];
  while (fgets(line, sizeof line, stdin) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    char* value = strchr(line, '\t');
    *value++ = '\0';
    apr_status_t stored = APR_EGENERAL;
    // What finds a server dead fails; the next try goes elsewhere.
    for (int tries = 0; tries < 5 && stored != APR_SUCCESS; ++tries) {
      stored = apr_memcache_set(client, line, value, strlen(value), 0, 0);
    }
    must(stored, line);
  }
  return 0;
}
