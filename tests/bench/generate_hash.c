/* libmemcached's own placement of KEYS keys on ten servers by weighted ketama (MD5), in a loop: prints keys per second. */
#include <libmemcached/memcached.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int count, char** words) {
  if (count != 2) return 64;
  const long keys = atol(words[1]);
  memcached_st* client = memcached_create(NULL);
  memcached_behavior_set(client, MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED, 1);
  char text[64];
  for (int i = 1; i <= 10; ++i) {
    snprintf(text, sizeof text, "10.0.0.%d", i);
    memcached_server_add(client, text, 11211);
  }
  struct timespec start, end;
  unsigned long sum = 0;
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (long i = 1; i <= keys; ++i) {
    const int size = snprintf(text, sizeof text, "n%ld", i);
    sum += memcached_generate_hash(client, text, (size_t)size);
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  printf("%.0f\n",
         (double)keys / ((double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9));
  memcached_free(client);
  return sum == 0;
}
