// Algorithms of published articles: a few requests of each client, and the result that must not occur.
#pragma once

#include "common/base/bytes.hpp"
#include "tests/exhaustive/pairs.hpp"
#include "tests/models/tenures.hpp"

namespace mcds::exhaustive {

struct Facts {
  models::Tenures held;
  std::uint64_t done = 0;   // acknowledged
  std::uint64_t tried = 0;  // acknowledged, and those that may have been done
  std::vector<std::string> reported;
};

class Naive {
 public:
  Naive(Context& context, Actor& client, Facts& facts) : client(client), facts(facts), context_(context) {}

  Reply ask(const Request& request) { return context_.cluster.execute(request); }
  std::vector<Reply> ask_all(const std::vector<Request>& batch) { return context_.cluster.execute(batch); }
  std::optional<std::string> get(const std::string& key) {
    const Reply reply = ask(Request::get(key));
    return reply.outcome == Outcome::hit ? std::optional(reply.value) : std::nullopt;
  }
  std::uint64_t number(const std::string& key) { return parse_padded(get(key).value_or("0")); }
  bool set(const std::string& key, const std::string& value) {
    return ask(Request::set(key, value, Exptime::never())).outcome == Outcome::stored;
  }
  bool add(const std::string& key, const std::string& value, Exptime exptime = Exptime::never()) {
    return ask(Request::add(key, value, exptime)).outcome == Outcome::stored;
  }
  bool append(const std::string& key, const std::string& value) {
    return ask(Request::append(key, value)).outcome == Outcome::stored;
  }
  bool incr(const std::string& key) { return ask(Request::incr(key, 1)).outcome == Outcome::stored; }
  void remove(const std::string& key) { ask(Request::remove(key)); }
  std::string name() const { return std::to_string(client.index()); }

  bool acquire(Exptime exptime = Exptime::after(std::chrono::seconds(1), WallTime{})) {
    if (!add("lock", name(), exptime)) return false;
    facts.held.begin(client, std::chrono::seconds(1));
    return true;
  }
  // Releases the right. It does not count as held from the call on.
  void let_go() { facts.held.end(client, client.run().steps()); }
  void acknowledge(bool done) {
    ++facts.tried;
    facts.done += done ? 1 : 0;
  }

  Actor& client;
  Facts& facts;

 private:
  static std::uint64_t parse_padded(std::string text) {
    while (text.ends_with(' ')) text.pop_back();
    return parse_u64(text).value_or(0);
  }

  Context& context_;
};

using Deed = std::function<void(Naive&)>;
// Returns true if the result is wrong.
using Wrong = std::function<bool(Context&, const Facts&)>;

// Expects that a wrong result is found. `before` are the stored keys and values.
inline void hole(const std::string& name, const std::vector<Deed>& parts, const Wrong& wrong,
                 const Bounds& bounds, const std::vector<std::pair<std::string, std::string>>& before = {}) {
  caught(
      name,
      [&](Trial& run) {
        auto facts = std::make_shared<Facts>();
        for (const auto& [key, value] : before)
          run.observer().cluster.execute(Request::set(key, value, Exptime::never()));
        for (const Deed& part : parts) {
          run.client([facts, &part](Context& context, Actor& client) {
            client.operation("", [&] {
              Naive naive(context, client, *facts);
              part(naive);
              return "done";
            });
          });
        }
        run.check([facts, &wrong](Context& observer) -> std::optional<std::string> {
          if (wrong(observer, *facts)) return "wrong";
          return std::nullopt;
        });
      },
      bounds);
}

}  // namespace mcds::exhaustive
