/* How long commands take from start to exit, side by side: runs each in turn, again and again, and prints one line
 * of microseconds per command (the median, then the lower quartile), so that drifts of the machine hit all alike.
 *   spawn ROUNDS COMMAND WORD… -- COMMAND WORD… -- …
 *   spawn 0 COMMAND WORD…     runs it once with our standard input; prints how many KiB of memory it used at most,
 *                             and its microseconds */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char** environ;

enum { most_commands = 32 };

static double now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static double run_once(char** words, const posix_spawn_file_actions_t* quiet) {
  pid_t child;
  int status;
  const double start = now_us();
  if (posix_spawnp(&child, words[0], quiet, NULL, words, environ) != 0 ||
      waitpid(child, &status, 0) != child || status != 0) {
    fprintf(stderr, "spawn: %s failed\n", words[0]);
    exit(1);
  }
  return now_us() - start;
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int count, char** words) {
  if (count < 3) return 64;
  const int rounds = atoi(words[1]);
  char** commands[most_commands];
  int number = 0;
  commands[number++] = words + 2;
  for (int i = 2; i < count; ++i) {
    if (strcmp(words[i], "--") != 0) continue;
    words[i] = NULL;
    if (number == most_commands || i + 1 == count) return 64;
    commands[number++] = words + i + 1;
  }
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  double* times = calloc((size_t)number * (size_t)rounds + 1, sizeof *times);
  if (times == NULL || rounds < 0) return 64;
  if (rounds == 0) {
    struct rusage usage;
    const double time = run_once(commands[0], &quiet);
    getrusage(RUSAGE_CHILDREN, &usage);
    return printf("%ld %.0f\n", usage.ru_maxrss, time) < 0;
  }
  for (int c = 0; c < number; ++c) run_once(commands[c], &quiet);
  for (int r = 0; r < rounds; ++r) {
    for (int c = 0; c < number; ++c) times[c * rounds + r] = run_once(commands[c], &quiet);
  }
  for (int c = 0; c < number; ++c) {
    double* of_command = times + c * rounds;
    qsort(of_command, (size_t)rounds, sizeof *of_command, ascending);
    printf("%.1f %.1f\n", of_command[rounds / 2], of_command[rounds / 4]);
  }
  return 0;
}
