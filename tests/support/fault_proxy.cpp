#include "tests/support/fault_proxy.hpp"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <list>
#include <mutex>
#include <optional>
#include <thread>

#include "common/base/bytes.hpp"
#include "common/base/random.hpp"
#include "tests/support/memcached_process.hpp"
#include "tests/support/sockets.hpp"

namespace mcds::test {

namespace {

using Now = std::chrono::steady_clock::time_point;

constexpr std::size_t kept_requests = 1 << 20;

bool send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

// A client's connection and the server's connection that belongs to it.
struct Link {
  int client = -1;
  int server = -1;
  Fault fault = Fault::none;
  bool answered = true;  // the client's next bytes begin a trip
  bool mute = false;     // the client gets nothing more in this trip
  bool over = false;
  std::string held;    // bytes for the client that are not due yet
  std::string unread;  // no_meta: bytes of the client before a whole command
  Now due{};

  ~Link() {
    if (client >= 0) close(client);
    if (server >= 0) close(server);
  }
};

}  // namespace

class FaultProxy::Loop {
 public:
  Loop(const Server& upstream, std::uint64_t seed) : upstream_(upstream), random_(seed) {
    server_.socket_path = directory_.path() + "/p";
    listener_ = listen_at(server_.socket_path);
    wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    thread_ = std::thread([this] { run(); });
  }

  ~Loop() {
    ending_ = true;
    wake();
    thread_.join();
    if (listener_ >= 0) close(listener_);
    close(wake_);
  }

  // Changes settings between two steps of the loop.
  template <typename Change>
  void change(Change&& change) {
    {
      const std::lock_guard lock(mutex_);
      change();
    }
    wake();
  }

  template <typename Value>
  Value locked(const Value& value) const {
    const std::lock_guard lock(mutex_);
    return value;
  }

  void refuse(bool on) {
    if (on == (listener_ < 0)) return;
    if (on) {
      shutdown(listener_, SHUT_RDWR);  // a poll in progress keeps it open until it returns
      close(listener_);
      listener_ = -1;
    } else {
      listener_ = listen_at(server_.socket_path);
    }
  }

  Server server_;
  mutable std::mutex mutex_;
  Fault always_ = Fault::none;
  std::optional<std::size_t> countdown_;
  Fault once_ = Fault::none;
  double probability_ = 0;
  std::vector<Fault> any_;
  std::chrono::milliseconds delay_{50};
  std::string garbage_ = "WAT?\r\n";
  bool silent_ = false;
  std::list<Link> links_;
  std::size_t trips_ = 0, connections_ = 0, faults_ = 0;
  std::string received_;

 private:
  void wake() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof one);
  }

  void run() {
    while (!ending_) {
      std::vector<pollfd> waiting;
      int timeout = -1;
      {
        const std::lock_guard lock(mutex_);
        links_.remove_if([](const Link& link) { return link.over; });
        waiting = interests();
        timeout = next_due();
      }
      poll(waiting.data(), waiting.size(), timeout);
      const std::lock_guard lock(mutex_);
      serve(waiting);
    }
  }

  std::vector<pollfd> interests() {
    std::vector<pollfd> waiting = {{wake_, POLLIN, 0}};
    if (silent_) return waiting;
    if (listener_ >= 0) waiting.push_back({listener_, POLLIN, 0});
    for (const Link& link : links_) {
      waiting.push_back({link.client, POLLIN, 0});
      waiting.push_back({link.server, POLLIN, 0});
    }
    return waiting;
  }

  int next_due() const {
    std::optional<Now> first;
    for (const Link& link : links_)
      if (!link.held.empty() && (!first || link.due < *first)) first = link.due;
    if (!first) return -1;
    const auto left = *first - std::chrono::steady_clock::now();
    return std::max(0, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
  }

  void serve(const std::vector<pollfd>& waiting) {
    std::uint64_t drained = 0;
    [[maybe_unused]] const ssize_t read_size = read(wake_, &drained, sizeof drained);
    if (silent_) return;
    const auto ready = [&](int fd) {
      for (const pollfd& one : waiting)
        if (one.fd == fd && one.revents != 0) return true;
      return false;
    };
    for (Link& link : links_) {
      if (!link.over && ready(link.client)) from_client(link);
      if (!link.over && ready(link.server)) from_server(link);
      if (!link.over) deliver_due(link);
    }
    if (listener_ >= 0 && ready(listener_)) accept_client();
  }

  void accept_client() {
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    ++connections_;
    Link& link = links_.emplace_back();
    link.client = client;
    link.server = connect_to(upstream_);
    if (link.server < 0) link.over = true;
    const timeval patience{5, 0};
    for (const int fd : {link.client, link.server})
      setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  }

  Fault choose() {
    if (countdown_) {
      if (*countdown_ > 0) return --*countdown_, Fault::none;
      countdown_.reset();
      return once_;
    }
    if (!any_.empty() && random_.unit() < probability_) return any_[random_.below(any_.size())];
    return always_;
  }

  void begin_trip(Link& link) {
    ++trips_;
    link.fault = choose();
    link.answered = false;
    link.mute = false;
    if (link.fault != Fault::none) ++faults_;
  }

  static std::optional<std::string> received(int fd) {
    std::string bytes(1 << 16, '\0');
    const ssize_t got = recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::string();
    if (got <= 0) return std::nullopt;
    bytes.resize(static_cast<std::size_t>(got));
    return bytes;
  }

  void from_client(Link& link) {
    const std::optional<std::string> bytes = received(link.client);
    if (!bytes) {
      link.over = true;
      return;
    }
    if (bytes->empty()) return;
    if (received_.size() < kept_requests) received_ += *bytes;
    if (link.answered) begin_trip(link);
    switch (link.fault) {
      case Fault::lose_request: break;
      case Fault::hang_up: link.over = true; break;
      case Fault::cut_request:
        send_all(link.server, std::string_view(*bytes).substr(0, bytes->size() / 2));
        link.over = true;
        break;
      case Fault::answer_garbage:
        link.answered = true;
        link.over = !send_all(link.client, garbage_);
        break;
      case Fault::no_meta:
        link.unread += *bytes;
        answer_as_of_old(link);
        break;
      default: link.over = !send_all(link.server, *bytes);
    }
  }

  // Returns the size of the first command of `bytes` with its data block, or 0 if it is incomplete.
  static std::size_t command_size(std::string_view bytes) {
    const std::size_t line = bytes.find('\n') + 1;
    if (line == 0) return 0;
    const std::vector<std::string_view> words = split(bytes.substr(0, line - 2), ' ');
    const bool stores = words[0] == "add" || words[0] == "set" || words[0] == "replace" ||
                        words[0] == "append" || words[0] == "cas";
    const std::size_t size = line + (stores ? parse_u64(words.at(4)).value_or(0) + 2 : 0);
    return size <= bytes.size() ? size : 0;
  }

  // Answers each meta line with ERROR, and forwards other commands and their answers one by one.
  static void answer_as_of_old(Link& link) {
    link.answered = true;
    while (const std::size_t size = command_size(link.unread)) {
      const std::string command = link.unread.substr(0, size);
      link.unread.erase(0, size);
      std::string reply = "ERROR\r\n";
      if (command[0] != 'm') {
        reply.clear();
        const bool many = command.starts_with("get") || command.starts_with("stats");
        link.over = !send_all(link.server, command);
        const bool quiet = std::string_view(command).substr(0, command.find('\r')).ends_with(" noreply");
        const auto complete = [&] {
          if (quiet) return true;
          return reply.ends_with("\n") && (!many || reply.ends_with("END\r\n") || reply.starts_with("ERROR"));
        };
        char byte = 0;
        while (!complete() && recv(link.server, &byte, 1, 0) == 1) reply += byte;
      }
      link.over = link.over || !send_all(link.client, reply);
      if (link.over) return;
    }
  }

  void from_server(Link& link) {
    std::optional<std::string> bytes = received(link.server);
    if (!bytes) {
      link.over = true;
      return;
    }
    if (bytes->empty()) return;
    link.answered = true;
    if (link.mute) return;
    reply(link, std::move(*bytes));
  }

  void reply(Link& link, std::string bytes) {
    switch (link.fault) {
      case Fault::lose_reply: link.answered = false; return;
      case Fault::cut_reply:
        send_all(link.client, std::string_view(bytes).substr(0, bytes.size() / 2));
        link.over = true;
        return;
      case Fault::truncate_reply:
        link.mute = true;
        bytes.resize(bytes.size() / 2);
        break;
      case Fault::corrupt_reply:
        bytes[random_.below(bytes.size())] ^= static_cast<char>(1 + random_.below(255));
        link.fault = Fault::none;
        break;
      case Fault::delay_reply:
      case Fault::drip_reply:
        if (link.held.empty()) link.due = std::chrono::steady_clock::now() + delay_;
        link.held += bytes;
        return;
      default: break;
    }
    link.over = !send_all(link.client, bytes);
  }

  void deliver_due(Link& link) {
    const Now now = std::chrono::steady_clock::now();
    if (link.held.empty() || now < link.due) return;
    const std::size_t size = link.fault == Fault::drip_reply ? 1 : link.held.size();
    link.over = !send_all(link.client, std::string_view(link.held).substr(0, size));
    link.held.erase(0, size);
    link.due = now + delay_;
  }

  Server upstream_;
  TempDirectory directory_;
  SeededRandom random_;
  int listener_ = -1;
  int wake_ = -1;
  std::atomic<bool> ending_ = false;
  std::thread thread_;
};

FaultProxy::FaultProxy(const Server& upstream, std::uint64_t seed)
    : loop_(std::make_unique<Loop>(upstream, seed)) {}
FaultProxy::~FaultProxy() = default;

const Server& FaultProxy::server() const {
  return loop_->server_;
}

void FaultProxy::always(Fault fault) {
  loop_->change([&] {
    loop_->always_ = fault;
    loop_->any_.clear();
    loop_->countdown_.reset();
  });
}

void FaultProxy::after(std::size_t trips, Fault fault) {
  loop_->change([&] {
    loop_->always_ = Fault::none;
    loop_->any_.clear();
    loop_->countdown_ = trips;
    loop_->once_ = fault;
  });
}

void FaultProxy::randomly(double probability, std::vector<Fault> any) {
  loop_->change([&] {
    loop_->probability_ = probability;
    loop_->any_ = std::move(any);
  });
}

void FaultProxy::delay(std::chrono::milliseconds delay) {
  loop_->change([&] { loop_->delay_ = delay; });
}

void FaultProxy::garbage(std::string reply) {
  loop_->change([&] { loop_->garbage_ = std::move(reply); });
}

void FaultProxy::refuse(bool on) {
  loop_->change([&] { loop_->refuse(on); });
}

void FaultProxy::silent(bool on) {
  loop_->change([&] { loop_->silent_ = on; });
}

void FaultProxy::cut() {
  loop_->change([&] { loop_->links_.clear(); });
}

std::size_t FaultProxy::trips() const {
  return loop_->locked(loop_->trips_);
}

std::size_t FaultProxy::connections() const {
  return loop_->locked(loop_->connections_);
}

std::size_t FaultProxy::faults() const {
  return loop_->locked(loop_->faults_);
}

std::string FaultProxy::received() const {
  return loop_->locked(loop_->received_);
}

}  // namespace mcds::test
