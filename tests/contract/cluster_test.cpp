// The Cluster contract: every operation and each of its outcomes, on every backend.
#include <doctest/doctest.h>

#include "common/base/errors.hpp"
#include "tests/support/backends.hpp"

using namespace mcds;
using namespace mcds::test;

namespace {

constexpr auto never = Exptime::never();

template <typename Check>
void on_every_backend(Check&& check) {
  for (const std::string& name : backend_names()) {
    CAPTURE(name);
    const auto backend = make_backend(name);
    if constexpr (std::is_invocable_v<Check, Cluster&>)
      check(backend->cluster());
    else
      check(*backend);
  }
}

std::string get(Cluster& cluster, const std::string& key) {
  const Reply reply = cluster.execute(Request::get(key));
  if (reply.outcome == Outcome::hit) return reply.value;
  const std::string why = reply.failure ? ": " + reply.failure->message : "";
  return '<' + std::string(name_of(reply.outcome)) + why + '>';
}

Exptime in(int seconds) {
  return Exptime::after(std::chrono::seconds(seconds), SystemClock().wall());
}

}  // namespace

TEST_CASE("contract: get and gets hit and miss; flags, empty values and all bytes come back") {
  on_every_backend([](Cluster& cluster) {
    std::string bytes;
    for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
    bytes += "\r\nEND\r\nVALUE x 0 1\r\n";
    Request with_flags = Request::set("bytes", bytes, never);
    with_flags.flags = 4026531841;
    CHECK(cluster.execute(with_flags).outcome == Outcome::stored);
    CHECK(cluster.execute(Request::set("empty", "", never)).outcome == Outcome::stored);
    const Reply hit = cluster.execute(Request::get("bytes"));
    CHECK(hit.outcome == Outcome::hit);
    CHECK(hit.value == bytes);
    CHECK(hit.flags == 4026531841);
    const Reply gets = cluster.execute(Request::gets("empty"));
    CHECK(gets.outcome == Outcome::hit);
    CHECK(gets.value.empty());
    CHECK(gets.cas.value != 0);
    CHECK(cluster.execute(Request::get("missing")).outcome == Outcome::miss);
    CHECK(cluster.execute(Request::gets("missing")).outcome == Outcome::miss);
  });
}

TEST_CASE("contract: add, set, replace and append store only when they may") {
  on_every_backend([](Cluster& cluster) {
    CHECK(cluster.execute(Request::replace("k", "0", never)).outcome == Outcome::not_stored);
    CHECK(cluster.execute(Request::append("k", "0")).outcome == Outcome::not_stored);
    CHECK(cluster.execute(Request::add("k", "1", never)).outcome == Outcome::stored);
    CHECK(cluster.execute(Request::add("k", "2", never)).outcome == Outcome::not_stored);
    CHECK(cluster.execute(Request::append("k", "3")).outcome == Outcome::stored);
    CHECK(get(cluster, "k") == "13");
    CHECK(cluster.execute(Request::replace("k", "4", never)).outcome == Outcome::stored);
    CHECK(get(cluster, "k") == "4");
    CHECK(cluster.execute(Request::set("k", "5", never)).outcome == Outcome::stored);
    CHECK(get(cluster, "k") == "5");
  });
}

// Adds to which the server says nothing must still be counted right, on a connection that has stored
// before and on one that has not.
TEST_CASE("contract: add_and_get shows what is there, and whether this add stored it") {
  on_every_backend([](Cluster& cluster) {
    for (int round = 0; round < 3; ++round) {
      const std::string name = "added" + std::to_string(round) + ':';
      CHECK(cluster.execute(Request::set(name + "7", "before", never)).outcome == Outcome::stored);
      std::vector<Request> batch;
      for (int i = 0; i < 150; ++i) {
        Request request = Request::add_and_get(name + std::to_string(i),
                                               std::to_string(i) + std::string(i % 3 * 100, 'x'), never);
        request.flags = i;
        batch.push_back(request);
      }
      batch.push_back(Request::add_and_get(name + "large", std::string(2 << 20, 'x'), never));
      for (const bool first : {true, false}) {
        const std::vector<Reply> replies = cluster.execute(batch);
        for (int i = 0; i < 150; ++i) {
          CAPTURE(i);
          REQUIRE(replies[i].outcome == Outcome::hit);
          CHECK(replies[i].value == (i == 7 ? "before" : batch[i].value));
          CHECK(replies[i].flags == (i == 7 ? 0 : i));
          if (i != 7) CHECK(replies[i].created == first);  // of other bytes it says nothing
        }
        CHECK(replies[150].outcome == Outcome::miss);
        CHECK_FALSE(replies[150].created);
      }
    }
  });
}

TEST_CASE("contract: cas stores on the unique of the last gets, and never over a rival's change") {
  on_every_backend([](Backend& backend) {
    Cluster& cluster = backend.cluster();
    cluster.execute(Request::set("k", "1", never));
    CasUnique cas = cluster.execute(Request::gets("k")).cas;
    CHECK(cluster.execute(Request::compare_and_set("k", "2", never, cas)).outcome == Outcome::stored);
    CHECK(cluster.execute(Request::compare_and_set("k", "3", never, cas)).outcome == Outcome::exists);
    for (const Request& change :
         {Request::set("k", "9", never), Request::append("k", "9"), Request::incr("k", 1)}) {
      cas = cluster.execute(Request::gets("k")).cas;
      CHECK(backend.rival().execute(change).outcome == Outcome::stored);
      CHECK(cluster.execute(Request::compare_and_set("k", "4", never, cas)).outcome == Outcome::exists);
      cas = cluster.execute(Request::gets("k")).cas;
      backend.rival().execute(change);
      CHECK(cluster.execute(Request::remove_if("k", cas)).outcome == Outcome::exists);
    }
    cas = cluster.execute(Request::gets("k")).cas;
    backend.rival().execute(Request::remove("k"));
    CHECK(cluster.execute(Request::compare_and_set("k", "4", never, cas)).outcome == Outcome::not_found);
  });
}

TEST_CASE("contract: remove_if deletes on the right unique only; 0 is refused before sending") {
  on_every_backend([](Backend& backend) {
    Cluster& cluster = backend.cluster();
    cluster.execute(Request::set("k", "1", never));
    const CasUnique cas = cluster.execute(Request::gets("k")).cas;
    CHECK(cluster.execute(Request::remove_if("k", cas)).outcome == Outcome::deleted);
    CHECK(get(cluster, "k") == "<miss>");
    if (&backend.cluster() == &backend.rival()) return;  // in memory it is an assertion
    cluster.execute(Request::set("k", "1", never));
    CHECK(cluster.execute(Request::remove_if("k", {})).is(ReplyFailure::Kind::refused));
    CHECK(cluster.execute(Request::compare_and_set("k", "2", never, {})).is(ReplyFailure::Kind::refused));
    CHECK(get(cluster, "k") == "1");
  });
}

TEST_CASE("contract: incr and decr count, wrap, stop at 0 and leave text alone") {
  on_every_backend([](Cluster& cluster) {
    CHECK(cluster.execute(Request::incr("n", 1)).outcome == Outcome::not_found);
    CHECK(cluster.execute(Request::decr("n", 1)).outcome == Outcome::not_found);
    cluster.execute(Request::set("n", "10", never));
    CHECK(cluster.execute(Request::incr("n", 5'000'000'000)).number == 5'000'000'010);
    CHECK(cluster.execute(Request::decr("n", 5'000'000'005)).number == 5);
    CHECK(cluster.execute(Request::decr("n", 6)).number == 0);
    cluster.execute(Request::set("text", "a word", never));
    CHECK(cluster.execute(Request::incr("text", 1)).is(ReplyFailure::Kind::not_a_number));
    CHECK(cluster.execute(Request::decr("text", 1)).is(ReplyFailure::Kind::not_a_number));
    CHECK(get(cluster, "text") == "a word");
  });
}

TEST_CASE("contract: touch and remove say whether there was an item") {
  on_every_backend([](Cluster& cluster) {
    CHECK(cluster.execute(Request::touch("k", in(100))).outcome == Outcome::not_found);
    CHECK(cluster.execute(Request::remove("k")).outcome == Outcome::not_found);
    cluster.execute(Request::set("k", "1", never));
    CHECK(cluster.execute(Request::touch("k", in(100))).outcome == Outcome::stored);
    CHECK(cluster.execute(Request::remove("k")).outcome == Outcome::deleted);
    CHECK(get(cluster, "k") == "<miss>");
  });
}

TEST_CASE("contract: composites create what is missing and say so") {
  on_every_backend([](Cluster& cluster) {
    Reply reply = cluster.execute(Request::incr_or_create("n", 5, 7, never));
    CHECK(reply.outcome == Outcome::stored);
    CHECK(reply.created);
    CHECK(reply.number == 7);
    reply = cluster.execute(Request::incr_or_create("n", 5, 7, never));
    CHECK(!reply.created);
    CHECK(reply.number == 12);
    Request flagged = Request::incr_or_create("flagged", 5, 7, never);
    flagged.flags = 3;
    CHECK(cluster.execute(flagged).number == 7);
    flagged.flags = 4;
    CHECK(cluster.execute(flagged).number == 12);
    CHECK(cluster.execute(Request::get("flagged")).flags == 3);
    reply = cluster.execute(Request::append_or_create("log", "P", "a", never));
    CHECK(reply.created);
    reply = cluster.execute(Request::append_or_create("log", "P", "b", never));
    CHECK(reply.outcome == Outcome::stored);
    CHECK(!reply.created);
    CHECK(get(cluster, "log") == "Pab");
    cluster.execute(Request::set("text", "word", never));
    CHECK(cluster.execute(Request::incr_or_create("text", 1, 1, never)).is(ReplyFailure::Kind::not_a_number));
  });
}

TEST_CASE("contract: a full item refuses append and keeps its value; too large values are refused") {
  on_every_backend([](Cluster& cluster) {
    const std::string large(max_value_size - 100, 'x');
    CHECK(cluster.execute(Request::set("k", large, never)).outcome == Outcome::stored);
    CHECK(cluster.execute(Request::append("k", std::string(1000, 'y'))).outcome == Outcome::not_stored);
    CHECK(cluster.execute(Request::append_or_create("k", "P", std::string(1000, 'y'), never)).outcome ==
          Outcome::not_stored);
    const std::string too_large((1 << 20) + 1, 'z');
    CHECK(cluster.execute(Request::add("other", too_large, never)).is(ReplyFailure::Kind::refused));
    CHECK(cluster.execute(Request::append("k", too_large)).is(ReplyFailure::Kind::refused));
    CHECK(cluster.execute(Request::replace("k", too_large, never)).is(ReplyFailure::Kind::refused));
    CHECK(get(cluster, "k") == large);
    CHECK(get(cluster, "other") == "<miss>");
  });
}

TEST_CASE("contract: an item is gone when its exptime has passed; incr and append keep the exptime") {
  std::vector<std::unique_ptr<Backend>> backends;
  for (const std::string& name : backend_names()) {
    Backend& backend = *backends.emplace_back(make_backend(name));
    backend.cluster().execute(Request::set("n", "1", in(2)));
    backend.cluster().execute(Request::set("l", "a", in(2)));
    backend.cluster().execute(Request::set("stays", "a", in(2)));
    backend.cluster().execute(Request::incr("n", 1));
    backend.cluster().execute(Request::append("l", "b"));
    backend.cluster().execute(Request::touch("stays", in(1000)));
  }
  for (std::size_t i = 0; i < backends.size(); ++i) {
    CAPTURE(backend_names()[i]);
    backends[i]->pass(std::chrono::seconds(i == 0 || backend_names()[i] == "memory" ? 4 : 0));
    CHECK(get(backends[i]->cluster(), "n") == "<miss>");
    CHECK(get(backends[i]->cluster(), "l") == "<miss>");
    CHECK(get(backends[i]->cluster(), "stays") == "a");
  }
}

TEST_CASE("contract: unsafe keys are refused and nothing of them reaches the server") {
  for (const std::string name : {"classic", "meta", "automatic", "old"}) {
    CAPTURE(name);
    const auto backend = make_backend(name);
    Cluster& cluster = backend->cluster();
    cluster.execute(Request::set("kept", "1", never));
    for (const std::string& key : {std::string(), std::string("a b"), std::string("a\r\nflush_all\r\n"),
                                   std::string("a\0b", 3), std::string("\x7f"), std::string(251, 'k')}) {
      const bool in_base64 = !key.empty() && key.size() < 100 && (name == "meta" || name == "automatic");
      const Reply got = cluster.execute(Request::get(key));
      CHECK((in_base64 ? got.outcome == Outcome::miss : got.is(ReplyFailure::Kind::refused)));
      for (const Request& store :
           {Request::set(key, "v\r\nflush_all", never), Request::add(key, "v", never)}) {
        const Reply stored = cluster.execute(store);
        const Outcome expected = store.op == Op::set ? Outcome::stored : Outcome::not_stored;
        CHECK((in_base64 ? stored.outcome == expected : stored.is(ReplyFailure::Kind::refused)));
      }
      if (in_base64) CHECK(get(cluster, key) == "v\r\nflush_all");
      CHECK(cluster.execute(Request::append(key, "v")).is(ReplyFailure::Kind::refused));
      CHECK(cluster.execute(Request::incr_or_create(key, 1, 1, never)).is(ReplyFailure::Kind::refused));
    }
    CHECK(cluster.execute(Request::set(std::string(250, 'k'), "v", never)).outcome == Outcome::stored);
    CHECK(get(cluster, std::string(250, 'k')) == "v");
    CHECK(get(cluster, "kept") == "1");
  }
}

TEST_CASE("contract: a batch over several servers answers in its order, one key's requests in theirs") {
  for (const std::string& name : backend_names()) {
    CAPTURE(name);
    const auto backend = make_backend(name, 3);
    Cluster& cluster = backend->cluster();
    std::vector<Request> batch;
    for (int i = 0; i < 300; ++i) {
      const std::string key = "k" + std::to_string(i);
      batch.push_back(Request::set(key, std::to_string(i), never));
      batch.push_back(Request::incr(key, 1));
      batch.push_back(Request::get(key));
      batch.push_back(Request::get("missing"));
    }
    const std::vector<Reply> replies = cluster.execute(batch);
    REQUIRE(replies.size() == batch.size());
    for (std::size_t i = 0; i < 300; ++i) {
      REQUIRE(replies[4 * i].outcome == Outcome::stored);
      REQUIRE(replies[4 * i + 1].number == i + 1);
      REQUIRE(replies[4 * i + 2].value == std::to_string(i + 1));
      REQUIRE(replies[4 * i + 3].outcome == Outcome::miss);
      REQUIRE(replies[4 * i].server == cluster.server_of(batch[4 * i]));
    }
    std::vector<Request> gets;
    for (int i = 0; i < 5000; ++i) gets.push_back(Request::get("k" + std::to_string(i % 400)));
    const std::vector<Reply> got = cluster.execute(gets);
    for (std::size_t i = 0; i < got.size(); ++i)
      REQUIRE(got[i].outcome == (i % 400 < 300 ? Outcome::hit : Outcome::miss));
  }
}

TEST_CASE("contract: version, stats and probe") {
  on_every_backend([](Cluster& cluster) {
    const Reply version = cluster.execute(Request::version(0));
    CHECK(version.outcome == Outcome::hit);
    CHECK(version.value.find('.') != std::string::npos);
    cluster.execute(Request::set("k", "12345", in(1000)));
    const Reply probe = cluster.execute(Request::probe("k", 0));
    CHECK(probe.outcome == Outcome::hit);
    CHECK(probe.value == "12345");
    CHECK(probe.cas.value != 0);
    if (probe.age.ttl) CHECK(probe.age.ttl->count() > 990);
    CHECK(cluster.execute(Request::probe("missing", 0)).outcome == Outcome::miss);
    const Reply stats = cluster.execute(Request::stats(0));
    CHECK(stats.outcome == Outcome::hit);
    CHECK(stats.value.find("curr_items 1\n") != std::string::npos);
  });
}

TEST_CASE(
    "contract: a cas unique is worthless after a restart, although the new server counts from 1 again") {
  for (const std::string name : {"classic", "meta", "automatic", "old"}) {
    CAPTURE(name);
    const auto backend = make_backend(name);
    Cluster& cluster = backend->cluster();
    cluster.execute(Request::set("k", "mine", never));
    const CasUnique cas = cluster.execute(Request::gets("k")).cas;
    backend->restart(0);
    CHECK(backend->rival().execute(Request::get("warm-up")).outcome != Outcome::hit);
    backend->rival().execute(Request::set("k", "a stranger's", never));
    backend->rival().execute(Request::set("k", "a stranger's", never));
    for (int i = 0; i < 3; ++i) {
      const Reply reply = cluster.execute(Request::remove_if("k", cas));
      CHECK((reply.outcome == Outcome::exists || reply.failed()));
    }
    CHECK(get(backend->rival(), "k") == "a stranger's");
  }
}

TEST_CASE("contract: servers without meta commands, met one after the other, get each request once") {
  const auto backend = make_backend("old", 3);
  Cluster& cluster = backend->cluster();
  for (std::size_t server = 0; server < 3; ++server)
    cluster.execute(Request::set("plain", "0", never).on(server));
  std::vector<Request> batch;
  for (std::size_t server = 0; server < 3; ++server) {
    // The servers met before take part again.
    batch.push_back(Request::incr("plain", 1).on(server));
    batch.push_back(Request::incr_or_create("n", 10, 10, never).on(server));
    batch.push_back(Request::gets("n").on(server));
    const std::vector<Reply> replies = cluster.execute(batch);
    for (std::size_t met = 0; met <= server; ++met) {
      const std::size_t times = server - met + 1;
      CHECK(replies[3 * met].number == times);
      CHECK(replies[3 * met + 1].number == 10 * times);
      CHECK(replies[3 * met + 1].created == (times == 1));
      CHECK(replies[3 * met + 2].value == std::to_string(10 * times));
    }
  }
}

TEST_CASE("contract: batches on their way are executed as they were begun, and finished in any order") {
  on_every_backend([](Cluster& cluster) {
    const auto set = cluster.begin({Request::set("k", "1", never), Request::set("n", "5", never)});
    const auto append = cluster.begin({Request::append("k", "2"), Request::incr("n", 1)});
    const auto created = cluster.begin(
        {Request::append_or_create("k", "P", "3", never), Request::incr_or_create("n", 1, 1, never)});
    const auto read = cluster.begin({Request::get("missing"), Request::get("k"), Request::gets("n")});
    CHECK(get(cluster, "k") == "123");
    const auto values = read->finish();
    CHECK(values[0].outcome == Outcome::miss);
    CHECK(values[1].value == "123");
    CHECK(values[2].value == "7");
    CHECK(cluster.execute(Request::compare_and_set("n", "8", never, values[2].cas)).outcome ==
          Outcome::stored);
    for (const Reply& reply : created->finish()) {
      CHECK(reply.outcome == Outcome::stored);
      CHECK(!reply.created);
    }
    CHECK(append->finish()[1].number == 6);
    for (const Reply& reply : set->finish()) CHECK(reply.outcome == Outcome::stored);
  });
}

TEST_CASE("contract: batches on their way may be more than any buffer between, in both directions") {
  constexpr std::size_t count = 1500, size = 2000;
  for (const std::string& name : backend_names()) {
    if (name == "old") continue;  // the proxy before it writes and reads by turns
    CAPTURE(name);
    const auto backend = make_backend(name);
    Cluster& cluster = backend->cluster();
    std::vector<std::unique_ptr<Pending>> sets, gets;
    for (int round = 0; round < 3; ++round) {
      std::vector<Request> batch, reads;
      for (std::size_t i = 0; i < count; ++i) {
        const std::string key = std::to_string(round) + '.' + std::to_string(i);
        batch.push_back(Request::set(key, key + std::string(size, 'x'), never));
        reads.push_back(Request::get(key));
      }
      sets.push_back(cluster.begin(std::move(batch)));
      gets.push_back(cluster.begin(std::move(reads)));
    }
    std::vector<Request> increments(100, Request::incr_or_create("n", 1, 1, never));
    CHECK(cluster.execute(increments).back().number == 100);
    for (int round = 0; round < 3; ++round) {
      std::size_t right = 0, stored = 0;
      const auto values = gets[static_cast<std::size_t>(round)]->finish();
      for (std::size_t i = 0; i < values.size(); ++i)
        right += values[i].value.starts_with(std::to_string(round) + '.' + std::to_string(i) + 'x');
      CHECK(right == count);
      for (const Reply& reply : sets[static_cast<std::size_t>(round)]->finish())
        stored += reply.outcome == Outcome::stored;
      CHECK(stored == count);
    }
  }
}

TEST_CASE("contract: in a batch on its way unsafe keys are refused, and an empty batch has no replies") {
  for (const std::string& name : backend_names()) {
    if (name == "memory") continue;  // no wire, nothing to break
    CAPTURE(name);
    const auto backend = make_backend(name);
    const auto pending =
        backend->cluster().begin({Request::set("a b", "v", never), Request::set("k", "v", never)});
    const auto replies = pending->finish();
    CHECK(replies[0].is(ReplyFailure::Kind::refused));
    CHECK(replies[1].outcome == Outcome::stored);
    CHECK(backend->cluster().begin({})->finish().empty());
  }
}

TEST_CASE("contract: after a batch is dropped every answer is still that of its request") {
  on_every_backend([](Cluster& cluster) {
    std::vector<Request> sets, gets;
    for (int i = 0; i < 3000; ++i) {
      sets.push_back(Request::set("k" + std::to_string(i), std::to_string(i), never));
      gets.push_back(Request::get("k" + std::to_string(i)));
    }
    static_cast<void>(cluster.execute(sets));
    auto kept = cluster.begin(gets);
    cluster.begin(gets).reset();
    const auto replies = kept->finish();
    for (std::size_t i = 0; i < replies.size(); ++i) {
      const bool right = replies[i].failed() || replies[i].value == std::to_string(i);
      if (!right) FAIL(replies[i].value << " is the answer to " << i);
      CHECK(!replies[i].unknown());
    }
    CHECK(get(cluster, "k17") == "17");
  });
}
