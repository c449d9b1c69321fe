// libmemcached: the calls in order: BEHAVIOR=NUMBER, HASH=NAME, DISTRIBUTION=NAME, PREFIX=TEXT, ADD=one or
// ADD=list.
#include <libmemcached/memcached.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct Name {
  const char* text;
  unsigned value;
};

static const struct Name hashes[] = {
    {"DEFAULT", MEMCACHED_HASH_DEFAULT},   {"MD5", MEMCACHED_HASH_MD5},
    {"CRC", MEMCACHED_HASH_CRC},           {"FNV1_64", MEMCACHED_HASH_FNV1_64},
    {"FNV1A_64", MEMCACHED_HASH_FNV1A_64}, {"FNV1_32", MEMCACHED_HASH_FNV1_32},
    {"FNV1A_32", MEMCACHED_HASH_FNV1A_32}, {"MURMUR", MEMCACHED_HASH_MURMUR},
    {"JENKINS", MEMCACHED_HASH_JENKINS},   {"MURMUR3", MEMCACHED_HASH_MURMUR3},
};
static const struct Name distributions[] = {
    {"CONSISTENT", MEMCACHED_DISTRIBUTION_CONSISTENT},
    {"CONSISTENT_KETAMA_SPY", MEMCACHED_DISTRIBUTION_CONSISTENT_KETAMA_SPY},
    {"VIRTUAL_BUCKET", MEMCACHED_DISTRIBUTION_VIRTUAL_BUCKET},
};
static const struct Name behaviors[] = {
    {"HASH_WITH_PREFIX_KEY", MEMCACHED_BEHAVIOR_HASH_WITH_PREFIX_KEY},
    {"KETAMA", MEMCACHED_BEHAVIOR_KETAMA},
    {"KETAMA_WEIGHTED", MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED},
    {"SORT_HOSTS", MEMCACHED_BEHAVIOR_SORT_HOSTS},
};
#define VALUE_OF(names, text) value_of(names, sizeof(names) / sizeof(names[0]), text)

static unsigned value_of(const struct Name* names, size_t count, const char* text) {
  for (size_t i = 0; i < count; ++i) {
    if (strcmp(names[i].text, text) == 0) return names[i].value;
  }
  fprintf(stderr, "no such word: %s\n", text);
  exit(1);
}

static void must(memcached_st* client, memcached_return_t result, const char* what) {
  if (result == MEMCACHED_SUCCESS) return;
  fprintf(stderr, "%s: %s\n", what, memcached_strerror(client, result));
  exit(1);
}

static void add(memcached_st* client, const char* servers, int as_list) {
  memcached_server_st* list = NULL;
  char* text = strdup(servers);
  for (char *at = text, *word; (word = strsep(&at, " ")) != NULL;) {
    const char* host = strsep(&word, "|");
    const in_port_t port = (in_port_t)atoi(strsep(&word, "|"));
    const uint32_t weight = (uint32_t)atoi(strsep(&word, "|"));
    memcached_return_t result = MEMCACHED_SUCCESS;
    if (as_list) {
      list = memcached_server_list_append_with_weight(list, host, port, weight, &result);
    } else if (port == 0) {
      result = memcached_server_add_unix_socket_with_weight(client, host, weight);
    } else {
      result = memcached_server_add_with_weight(client, host, port, weight);
    }
    must(client, result, host);
  }
  if (as_list) must(client, memcached_server_push(client, list), "push");
  memcached_server_list_free(list);
  free(text);
}

static void call(memcached_st* client, const char* servers, char* text) {
  const char* name = strsep(&text, "=");
  memcached_return_t result = MEMCACHED_SUCCESS;
  if (strcmp(name, "ADD") == 0) {
    add(client, servers, strcmp(text, "list") == 0);
  } else if (strcmp(name, "HASH") == 0) {
    result = memcached_behavior_set(client, MEMCACHED_BEHAVIOR_HASH, VALUE_OF(hashes, text));
  } else if (strcmp(name, "DISTRIBUTION") == 0) {
    result = memcached_behavior_set(client, MEMCACHED_BEHAVIOR_DISTRIBUTION, VALUE_OF(distributions, text));
  } else if (strcmp(name, "PREFIX") == 0) {
    result = memcached_callback_set(client, MEMCACHED_CALLBACK_PREFIX_KEY, text);
  } else {
    result =
        memcached_behavior_set(client, (memcached_behavior_t)VALUE_OF(behaviors, name), (uint64_t)atoi(text));
  }
  must(client, result, name);
}

int main(int count, char** arguments) {
  memcached_st* client = memcached_create(NULL);
  for (int i = 2; i < count; ++i) call(client, arguments[1], arguments[i]);
  char line[1024];
  while (fgets(line, sizeof line, stdin) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    char* value = strchr(line, '\t');
    *value++ = '\0';
    must(client, memcached_set(client, line, strlen(line), value, strlen(value), 0, 0), line);
  }
  memcached_free(client);
  return 0;
}
