// Preloaded into a program under test: its DNS questions go to 127.0.0.1, port $NAMESERVER_PORT.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netdb.h>
#include <resolv.h>
#include <stdlib.h>

__attribute__((constructor)) static void use_nameserver(void) {
  const char* port = getenv("NAMESERVER_PORT");
  if (port == NULL || res_init() != 0) return;
  _res.nscount = 1;
  _res.nsaddr_list[0].sin_family = AF_INET;
  _res.nsaddr_list[0].sin_port = htons((unsigned short)atoi(port));
  _res.nsaddr_list[0].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  _res.retrans = 1;
  _res.retry = 1;
}

// The settings are those of the thread that asks: this one, not one of the C library's.
int getaddrinfo_a(int mode, struct gaicb* list[], int count, struct sigevent* event) {
  (void)mode;
  (void)event;
  for (int i = 0; i < count; ++i)
    list[i]->__return =
        getaddrinfo(list[i]->ar_name, list[i]->ar_service, list[i]->ar_request, &list[i]->ar_result);
  return 0;
}
