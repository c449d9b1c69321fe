#include "common/cluster/name_lookup.hpp"

#include <sys/socket.h>

#include <array>
#include <map>
#include <mutex>
#include <tuple>

namespace mcds {

namespace {

// A lookup in progress. A thread of the C library writes to it until it is done, however late that is.
struct Lookup {
  std::string host, port;
  addrinfo hints{};
  gaicb request{};

  void begin() {
    request.ar_name = host.c_str();
    request.ar_service = port.empty() ? nullptr : port.c_str();
    request.ar_request = &hints;
    std::array<gaicb*, 1> list{&request};
    if (const int code = getaddrinfo_a(GAI_NOWAIT, list.data(), 1, nullptr); code != 0) failed = code;
  }
  int state() { return failed != 0 ? failed : gai_error(&request); }
  void wait(Duration longest) {
    SystemClock clock;
    const SteadyTime until = clock.steady() + longest;
    while (state() == EAI_INPROGRESS) {
      const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(until - clock.steady()).count();
      if (left <= 0) return;
      const timespec time{left / 1'000'000'000, left % 1'000'000'000};
      std::array<const gaicb*, 1> list{&request};
      gai_suspend(list.data(), 1, &time);
    }
  }

  int failed = 0;  // the lookup could not start
};

using Name = std::tuple<std::string, std::string, int, int>;

struct Lookups {
  std::mutex mutex;
  std::map<Name, std::unique_ptr<Lookup>> late;
};

// The result is never destroyed, because the threads may outlive main().
Lookups& lookups() {
  static Lookups& all = *new Lookups;
  return all;
}

}  // namespace

NameLookup look_up(const std::string& host, const std::string& port, Duration longest, int flags,
                   int family) {
  const std::lock_guard guard(lookups().mutex);
  const Name name{host, port, flags, family};
  std::unique_ptr<Lookup>& lookup = lookups().late[name];
  if (lookup == nullptr) {
    lookup = std::make_unique<Lookup>();
    lookup->host = host;
    lookup->port = port;
    lookup->hints.ai_socktype = SOCK_STREAM;
    lookup->hints.ai_flags = flags;
    lookup->hints.ai_family = family;
    lookup->begin();
    lookup->wait(longest);
  }
  NameLookup result;
  const int state = lookup->state();
  if (state == EAI_INPROGRESS) {
    result.error = "the name server does not answer in time";
    return result;
  }
  if (state == 0) result.addresses.reset(lookup->request.ar_result);
  if (state != 0) result.error = gai_strerror(state);
  lookups().late.erase(name);
  return result;
}

std::optional<std::string> host_of(const sockaddr* address, socklen_t size, int flags) {
  std::array<char, NI_MAXHOST> text{};
  const int code = getnameinfo(address, size, text.data(), text.size(), nullptr, 0, flags);
  return code == 0 ? std::optional<std::string>(text.data()) : std::nullopt;
}

}  // namespace mcds
