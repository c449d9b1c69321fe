// The program with one fault put in, at the requests that a careless client would have sent instead: for
// showing that the torture sees it. It is a program of its own, linked with `--wrap` around connect(); the
// one that is installed has none of it.
#include <cstdlib>
#include <map>
#include <memory>
#include <string>

#include "common/base/random.hpp"
#include "common/cluster/decorators.hpp"
#include "common/structures/counter/record.hpp"
#include "tests/support/mistakes.hpp"

namespace mcds::test {

namespace {

bool one_in(std::uint64_t times) {
  static SystemRandom random;
  return random.below(times) == 0;
}

bool is_element(const Request& request) {
  return request.key.find(":v:") != std::string::npos;
}

bool is_index(const Request& request) {
  return request.key.find(":i:") != std::string::npos;
}

// What the server would have said to what it was not sent.
Reply pretended(const Request& request, std::size_t server) {
  const bool removes = request.op == Op::remove || request.op == Op::remove_if;
  return Reply::of(removes ? Outcome::deleted : Outcome::stored, server);
}

class Planted final : public Decorator {
 public:
  Planted(std::unique_ptr<Cluster> inner, std::string fault)
      : Decorator(std::move(inner)), fault_(std::move(fault)) {}
  using Cluster::execute;

  std::vector<Reply> execute(std::span<const Request> batch) override {
    std::vector<Reply> replies;
    replies.reserve(batch.size());
    for (const Request& request : batch) replies.push_back(one(request));
    return replies;
  }

 private:
  Reply one(Request request) {
    if (drops(request)) return pretended(request, server_of(request));
    change(request);
    Reply reply = inner().execute(request);
    if (fault_ == "counter" && request.op == Op::incr_or_create && reply.unknown())
      return inner().execute(request);
    if (fault_ == "visitors" && request.op == Op::add && reply.outcome == Outcome::not_stored)
      return pretended(request, reply.server);
    if (fault_ == "again" && request.op == Op::cas && reply.unknown()) return count_again(request);
    return reply;
  }

  // Counts once more after a lost reply, without looking its id up.
  Reply count_again(const Request& request) {
    const std::size_t server = server_of(request);
    const Reply now = inner().execute(Request::gets(request.key).on(server));
    auto record = CounterRecord::parse(now.value);
    if (now.outcome != Outcome::hit || !record) return now;
    record->count(1, "again");
    return inner().execute(
        Request::compare_and_set(request.key, record->text(), request.exptime, now.cas).on(server));
  }

  // A write that is acknowledged and never sent.
  bool drops(const Request& request) {
    if (fault_ == "eventlog" || fault_ == "array") return appends(request) && one_in(20);
    if (fault_ == "hash") return is_element(request) && request.op == Op::replace && one_in(20);
    if (fault_ == "table") return is_element(request) && request.op == Op::remove && one_in(20);
    if (fault_ == "unlisted") return appends(request) && is_index(request) && one_in(3);
    // A new incarnation is written in one copy only.
    if (fault_ == "incarnation" && request.op == Op::add && CounterRecord::parse(request.value))
      return begun_on_.try_emplace(request.key, server_of(request)).first->second != server_of(request);
    // Of stores and of invalidations.
    if (fault_ == "cache") return request.op == Op::cas && one_in(5);
    return false;
  }
  static bool appends(const Request& request) {
    return request.op == Op::append || request.op == Op::append_or_create;
  }

  void change(Request& request) const {
    if (fault_ == "lock" && request.op == Op::add) request.op = Op::set;
    if (fault_ == "exact" && request.op == Op::cas) request.op = Op::set;
    // All are equally new, so the larger value counts, not the later.
    if (fault_ == "copies" && is_element(request) && request.flags > 1) request.flags = 1;
    if (fault_ == "cache") store_by_set(request);
  }

  std::string fault_;
  std::map<std::string, std::size_t> begun_on_;  // the server of a new counter's first copy
};

}  // namespace

using Placed = std::shared_ptr<const Placement>;

// The linker's names: the real connect(), and what everybody calls in its place.
std::unique_ptr<Cluster> real_connect(Placed placement, const ConnectOptions& options) __asm__(
    "__real__ZN4mcds7connectESt10shared_ptrIKNS_9PlacementEERKNS_14ConnectOptionsE");
std::unique_ptr<Cluster> planted_connect(Placed placement, const ConnectOptions& options) __asm__(
    "__wrap__ZN4mcds7connectESt10shared_ptrIKNS_9PlacementEERKNS_14ConnectOptionsE");

std::unique_ptr<Cluster> planted_connect(Placed placement, const ConnectOptions& options) {
  std::unique_ptr<Cluster> cluster = real_connect(std::move(placement), options);
  const char* fault = std::getenv("MCDS_PLANTED");
  if (fault == nullptr) return cluster;
  return std::make_unique<Planted>(std::move(cluster), fault);
}

}  // namespace mcds::test
