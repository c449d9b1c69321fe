// The text protocol of the meta transport: the requests it sends, and how it reads possible answers.
#include <doctest/doctest.h>

#include "common/base/bytes.hpp"
#include "tests/fuzz/reply_reading.hpp"

using namespace mcds;
using mcds::test::read_replies;
using ReadStep = meta::ReplyReader::Step;

namespace {

const Exptime never = Exptime::never();

std::string encoded(const Request& request) {
  const Request* one = &request;
  std::string out;
  meta::encode(std::span(&one, 1), 0, out);
  return out;
}

// Returns the step after an answer, which must be the same at once and byte by byte.
ReadStep step_of(const Request& request, std::string_view answer) {
  const auto whole = read_replies(std::span(&request, 1), answer, answer.size());
  const auto dripped = read_replies(std::span(&request, 1), answer, 1);
  CHECK(whole.last == dripped.last);
  CHECK(whole.replies[0].outcome == dripped.replies[0].outcome);
  return whole.last;
}

Reply reply_to(const Request& request, std::string_view answer) {
  CHECK(step_of(request, answer) == ReadStep::done);
  const auto reading = read_replies(std::span(&request, 1), answer, 1);
  CHECK(reading.position == answer.size());
  return reading.replies[0];
}

Request remove_if_42() {
  return Request::remove_if("k", CasUnique{42});
}

}  // namespace

TEST_CASE("meta wire: each request's bytes") {
  CHECK(encoded(Request::get("k")) == "get k\r\n");
  CHECK(encoded(Request::gets("k")) == "mg k k v f c\r\n");
  CHECK(encoded(Request::set("k", std::string("a\0b", 3), never)) ==
        std::string("set k 0 0 3\r\na\0b\r\n", 18));
  CHECK(encoded(Request::compare_and_set("k", "v", never, CasUnique{UINT64_MAX})) ==
        "cas k 0 0 1 18446744073709551615\r\nv\r\n");
  CHECK(encoded(Request::incr("k", UINT64_MAX)) == "incr k 18446744073709551615\r\n");
  CHECK(encoded(Request::incr_or_create("k", 2, 7, never)) == "mg k k v f c t u\r\nma k N0 J7 D2 v c\r\n");
  CHECK(encoded(remove_if_42()) == "md k C42\r\n");
  CHECK(encoded(Request::stats(0)) == "stats\r\n");
  CHECK(encoded(Request::stats(0, "items")) == "stats items\r\n");
}

TEST_CASE(
    "meta wire: keys with spaces and control characters go in base64, and no byte of them is a command") {
  const std::string key = "a b\r\nflush_all\r\n";
  const std::string wire = "YSBiDQpmbHVzaF9hbGwNCg==";
  const std::string opaque = "O" + checksum(key);
  CHECK(encoded(Request::get(key)) == "mg " + wire + " b v f c " + opaque + "\r\n");
  CHECK(encoded(Request::gets(key)) == "mg " + wire + " b v f c " + opaque + "\r\n");
  CHECK(encoded(Request::probe(key, 0)) == "mg " + wire + " b v f c " + opaque + " t l u\r\n");
  CHECK(encoded(Request::touch(key, Exptime::gone())) == "mg " + wire + " b T2592001\r\n");
  CHECK(encoded(Request::remove(key)) == "md " + wire + " b\r\n");
  CHECK(encoded(Request::remove_if(key, CasUnique{42})) == "md " + wire + " b C42\r\n");
  CHECK(encoded(Request::add(key, "x", Exptime::gone())) == "ms " + wire + " 1 b F0 T2592001 ME\r\nx\r\n");
  CHECK(encoded(Request::set(key, "x", never)) == "ms " + wire + " 1 b F0 T0 MS\r\nx\r\n");
  CHECK(reply_to(Request::add(key, "x", never), "HD\r\n").outcome == Outcome::stored);
  CHECK(reply_to(Request::add(key, "x", never), "NS\r\n").outcome == Outcome::not_stored);
  const Reply hit = reply_to(Request::get(key), "VA 1 f7 c9 " + opaque + " b\r\nx\r\n");
  CHECK(hit.outcome == Outcome::hit);
  CHECK(hit.value == "x");
  CHECK(hit.flags == 7);
  CHECK(reply_to(Request::get(key), "EN\r\n").outcome == Outcome::miss);
  CHECK(reply_to(Request::get(key), "EN " + opaque + "\r\n").outcome == Outcome::miss);
  CHECK(step_of(Request::get(key), "VA 1 f7 c9 O00000000\r\nx\r\n") == ReadStep::out_of_step);
  CHECK(step_of(Request::get(key), "VA 1 f7 c9\r\nx\r\n") == ReadStep::out_of_step);
  CHECK(reply_to(Request::touch(key, never), "HD\r\n").outcome == Outcome::stored);
  CHECK(reply_to(Request::touch(key, never), "EN\r\n").outcome == Outcome::not_found);
  CHECK(reply_to(Request::remove(key), "HD\r\n").outcome == Outcome::deleted);
  CHECK(reply_to(Request::remove_if(key, CasUnique{42}), "EX\r\n").outcome == Outcome::exists);
}

TEST_CASE("meta wire: what keys with spaces cannot be used for is refused before anything is sent") {
  const meta::RequestFormat classic{.meta = false}, meta_words, before_1_6_13{.compares_in_md = false};
  CHECK(meta::unsupported_reason(meta_words, Request::get("a b")).empty());
  CHECK(meta::unsupported_reason(classic, Request::get("ab")).empty());
  CHECK_FALSE(meta::unsupported_reason(classic, Request::get("a b")).empty());
  // A server that may not support base64 would execute the value as commands.
  CHECK_FALSE(meta::unsupported_reason(meta_words, Request::set("a b", "v", never)).empty());
  CHECK_FALSE(meta::unsupported_reason(meta_words, Request::add("a b", "v", never)).empty());
  meta::RequestFormat known = meta_words;
  known.long_lines = true;
  CHECK(meta::unsupported_reason(known, Request::add("a b", "v", never)).empty());
  CHECK_FALSE(meta::unsupported_reason(known, Request::replace("a b", "v", never)).empty());
  CHECK_FALSE(meta::unsupported_reason(meta_words, Request::incr_or_create("a\tb", 1, 1, never)).empty());
  CHECK_FALSE(meta::unsupported_reason(before_1_6_13, Request::remove_if("a b", CasUnique{1})).empty());
  CHECK_FALSE(meta::unsupported_reason(meta_words, Request::get(std::string(188, ' '))).empty());
}

TEST_CASE("meta wire: a run of gets ends at a key that goes in base64") {
  std::vector<Request> requests{Request::get("a"), Request::get("b c"), Request::get("d")};
  std::vector<const Request*> all;
  for (const Request& request : requests) all.push_back(&request);
  std::string out;
  for (std::size_t first = 0; first < all.size();) first += meta::encode(all, first, out).count;
  CHECK(out == "get a\r\nmg YiBj b v f c O" + checksum("b c") + "\r\nget d\r\n");
}

TEST_CASE("meta wire: a run of gets is one line, as long as it stays short") {
  std::vector<Request> requests(100, Request::get(std::string(200, 'k')));
  std::vector<const Request*> all;
  for (const Request& request : requests) all.push_back(&request);
  std::string out;
  const meta::Command command = meta::encode(all, 0, out);
  CHECK(command.count == 4);
  CHECK(out.size() < 1024);  // servers before 1.6.13 cut longer ones in two
  CHECK(out.ends_with("\r\n"));
}

TEST_CASE("meta wire: a run of gets with uniques is one line where the server is memcached") {
  const std::vector<Request> requests{Request::gets("a"), Request::gets("b"), Request::get("c"),
                                      Request::gets("d e")};
  std::vector<const Request*> all;
  for (const Request& request : requests) all.push_back(&request);
  const meta::RequestFormat memcached{.long_lines = true, .shows_cas = true};
  std::string out;
  for (std::size_t first = 0; first < all.size();) first += meta::encode(all, first, out, memcached).count;
  CHECK(out == "gets a b\r\nget c\r\nmg ZCBl b v f c O" + checksum("d e") + "\r\n");
}

TEST_CASE(
    "meta wire: a run of adds has one line of gets behind it, quiet where the unique says what was stored") {
  const std::vector<Request> requests{Request::add_and_get("a", "1", never),
                                      Request::add_and_get("b", "2", never), Request::get("c")};
  std::vector<const Request*> all;
  for (const Request& request : requests) all.push_back(&request);
  std::string loud, quiet;
  CHECK(meta::encode(all, 0, loud).count == 2);
  CHECK(loud == "add a 0 0 1\r\n1\r\nadd b 0 0 1\r\n2\r\nget a b\r\n");
  CHECK(meta::encode(all, 0, quiet, {.shows_cas = true, .quiet = true}).count == 2);
  CHECK(quiet == "add a 0 0 1 noreply\r\n1\r\nadd b 0 0 1 noreply\r\n2\r\ngets a b\r\n");
  std::string single;
  CHECK(meta::encode(all, 0, single, {.one_key_a_line = true}).count == 1);
  CHECK(single == "add a 0 0 1\r\n1\r\nget a\r\n");
}

TEST_CASE("meta wire: what is there after adds, and which of them stored it") {
  const std::vector<Request> requests{Request::add_and_get("a", "1", never),
                                      Request::add_and_get("b", "2", never)};
  for (const std::size_t piece : {1, 1000}) {
    const auto loud = read_replies(requests, "NOT_STORED\r\nSTORED\r\nVALUE b 0 1\r\n2\r\nEND\r\n", piece);
    CHECK(loud.answered == 2);
    CHECK(loud.replies[0].outcome == Outcome::miss);
    CHECK_FALSE(loud.replies[0].created);
    CHECK(loud.replies[1].value == "2");
    CHECK(loud.replies[1].created);
    const auto refused = read_replies(
        requests, "SERVER_ERROR out of memory storing object\r\nSTORED\r\nVALUE b 0 1\r\n2\r\nEND\r\n",
        piece);
    CHECK(refused.answered == 2);
    CHECK(refused.replies[0].outcome == Outcome::miss);
    const auto quiet = read_replies(requests, "VALUE a 0 1 7\r\n9\r\nEND\r\n", piece, true, true);
    CHECK(quiet.answered == 2);
    CHECK(quiet.replies[0].value == "9");
    CHECK(quiet.replies[0].cas.value == 7);
    CHECK(quiet.replies[1].outcome == Outcome::miss);
    // An add that must not be answered got an answer.
    CHECK(read_replies(requests, "STORED\r\nEND\r\n", piece, true, true).last == ReadStep::out_of_step);
    CHECK(read_replies(requests, "STORED\r\nEND\r\n", piece).last == ReadStep::out_of_step);
    CHECK(read_replies(requests, "CLIENT_ERROR bad data chunk\r\n", piece).last == ReadStep::out_of_step);
  }
}

TEST_CASE("meta wire: answers in the server's words") {
  CHECK(reply_to(Request::set("k", "v", never), "STORED\r\n").outcome == Outcome::stored);
  CHECK(reply_to(Request::add("k", "v", never), "NOT_STORED\r\n").outcome == Outcome::not_stored);
  // pogocache answers in this way.
  CHECK(reply_to(Request::add("k", "v", never), "EXISTS\r\n").outcome == Outcome::not_stored);
  CHECK(reply_to(Request::compare_and_set("k", "v", never, CasUnique{1}), "EXISTS\r\n").outcome ==
        Outcome::exists);
  CHECK(reply_to(Request::touch("k", never), "TOUCHED\r\n").outcome == Outcome::stored);
  CHECK(reply_to(Request::remove("k"), "NOT_FOUND\r\n").outcome == Outcome::not_found);
  CHECK(reply_to(remove_if_42(), "EX\r\n").outcome == Outcome::exists);
  CHECK(reply_to(Request::decr("k", 1), "7  \r\n").number == 7);
  CHECK(reply_to(Request::version(0), "VERSION 1.6.18\r\n").value == "1.6.18");
  CHECK(reply_to(Request::stats(0), "STAT a 1\r\nSTAT b c d\r\nEND\r\n").value == "a 1\nb c d\n");
  // memcached's `stats conns` of a unix socket with a long path
  CHECK(reply_to(Request::stats(0, "conns"), "STAT 9:addr unix:/tmp/a\nb\xb2\nj\r\nSTAT 9:state x\r\nEND\r\n")
            .value == "9:addr unix:/tmp/a?b\xb2?j\n9:state x\n");
}

TEST_CASE("meta wire: values are bytes") {
  const std::string bytes("a\r\nEND\r\n\0\xff", 10);
  const Reply plain = reply_to(Request::get("k"), "VALUE k 4294967295 10\r\n" + bytes + "\r\nEND\r\n");
  CHECK(plain.value == bytes);
  CHECK(plain.flags == UINT32_MAX);
  const Reply stamped =
      reply_to(Request::gets("k"), "VA 10 kk f3 c18446744073709551615\r\n" + bytes + "\r\n");
  CHECK(stamped.value == bytes);
  CHECK(stamped.cas.value == UINT64_MAX);
  CHECK(reply_to(Request::get("k"), "VALUE k 0 0\r\n\r\nEND\r\n").outcome == Outcome::hit);
}

TEST_CASE("meta wire: hits are told from misses by key, in a line of gets") {
  const std::vector<Request> requests{Request::get("a"), Request::get("b"), Request::get("c")};
  const auto reading = read_replies(requests, "VALUE b 0 1\r\nx\r\nEND\r\n", 1);
  CHECK(reading.answered == 3);
  CHECK(reading.replies[0].outcome == Outcome::miss);
  CHECK(reading.replies[1].value == "x");
  CHECK(reading.replies[2].outcome == Outcome::miss);
}

TEST_CASE("meta wire: values of other keys, twice, or out of order are no answer") {
  const std::vector<Request> requests{Request::get("a"), Request::get("b")};
  for (const char* answer : {"VALUE c 0 1\r\nx\r\nEND\r\n", "VALUE a 0 1\r\nx\r\nVALUE a 0 1\r\nx\r\nEND\r\n",
                             "VALUE b 0 1\r\nx\r\nVALUE a 0 1\r\nx\r\nEND\r\n"}) {
    CAPTURE(answer);
    CHECK(read_replies(requests, answer, 1).last == ReadStep::out_of_step);
  }
  CHECK(step_of(Request::gets("a"), "VA 1 kb f0 c1\r\nx\r\n") == ReadStep::out_of_step);
  CHECK(step_of(Request::gets("a"), "VA 1 f0 c1\r\nx\r\n") == ReadStep::out_of_step);
}

TEST_CASE("meta wire: lengths that lie are no answer") {
  for (const char* answer :
       {"VALUE k 0 2\r\nx\r\nEND\r\n", "VALUE k 0 0\r\nx\r\nEND\r\n", "VALUE k 0 -1\r\nx\r\nEND\r\n",
        "VALUE k 0 18446744073709551614\r\nx\r\n", "VALUE k 0 99999999999999999999\r\nx\r\n",
        "VALUE k 4294967296 1\r\nx\r\n", "VALUE k 0\r\nx\r\n", "VALUE k\r\n", "VALUE\r\n"}) {
    CAPTURE(answer);
    CHECK(step_of(Request::get("k"), answer) == ReadStep::out_of_step);
  }
  CHECK(step_of(Request::gets("k"), "VA 18446744073709551615 kk f0 c1\r\n") == ReadStep::out_of_step);
  CHECK(step_of(Request::incr_or_create("k", 1, 1, never), "EN\r\nVA 33\r\n1\r\n") == ReadStep::out_of_step);
}

TEST_CASE("meta wire: endless and broken lines are no answer") {
  CHECK(step_of(Request::remove("k"), std::string(4096, 'x')) == ReadStep::out_of_step);
  CHECK(step_of(Request::get("k"), "VALUE " + std::string(4096, 'k')) == ReadStep::out_of_step);
  CHECK(step_of(Request::remove("k"), "DELETED\n") == ReadStep::out_of_step);
  CHECK(step_of(Request::remove("k"), "\n") == ReadStep::out_of_step);
  CHECK(step_of(Request::remove("k"), std::string_view("DELETED\0\r\n", 10)) == ReadStep::out_of_step);
  CHECK(step_of(Request::remove("k"), "DELETED") == ReadStep::need_more);
}

TEST_CASE("meta wire: another command's answer is no answer") {
  CHECK(step_of(Request::set("k", "v", never), "END\r\n") == ReadStep::out_of_step);
  CHECK(step_of(Request::get("k"), "STORED\r\n") == ReadStep::out_of_step);
  CHECK(step_of(Request::incr("k", 1), "STORED\r\n") == ReadStep::out_of_step);
  CHECK(step_of(Request::incr("k", 1), "99999999999999999999\r\n") == ReadStep::out_of_step);
  CHECK(step_of(Request::incr("k", 1), "-1\r\n") == ReadStep::out_of_step);
  CHECK(step_of(remove_if_42(), "DELETED\r\n") == ReadStep::out_of_step);
  CHECK(step_of(Request::stats(0), "STORED\r\n") == ReadStep::out_of_step);
}

TEST_CASE("meta wire: refusals") {
  const Reply full = reply_to(Request::set("k", "v", never), "SERVER_ERROR out of memory storing object\r\n");
  CHECK(full.is(ReplyFailure::Kind::refused));
  const Reply text =
      reply_to(Request::incr("k", 1), "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n");
  CHECK(text.is(ReplyFailure::Kind::not_a_number));
  CHECK(step_of(Request::set("k", "v", never), "CLIENT_ERROR bad data chunk\r\n") == ReadStep::out_of_step);
  CHECK(step_of(Request::gets("k"), "ERROR\r\n") == ReadStep::no_meta);
  CHECK(step_of(Request::incr_or_create("k", 1, 1, never), "ERROR\r\nERROR\r\n") == ReadStep::no_meta);
  CHECK(step_of(Request::get("k"), "ERROR Too many open connections\r\n") == ReadStep::turned_away);
}

TEST_CASE("meta wire: what a proxy says of a server behind it was once taken for a refusal") {
  const std::vector<Request> changes = {Request::set("k", "v", never), Request::incr("k", 1),
                                        Request::remove("k"), Request::append("k", "v")};
  // These are messages of twemproxy, mcrouter and memcached's own proxy.
  for (const std::string why : {"Connection timed out", "Connection reset by peer", "Host is down", "timeout",
                                "Remote error", "backend failure", "unknown", ""}) {
    CAPTURE(why);
    for (const Request& change : changes) {
      const Reply reply = reply_to(change, "SERVER_ERROR " + why + "\r\n");
      CHECK(reply.unknown());
      CHECK(reply.failure->relayed);
    }
    CHECK(reply_to(Request::get("k"), "SERVER_ERROR " + why + "\r\n").is(ReplyFailure::Kind::refused));
  }
  for (const std::string why : {"out of memory storing object", "Out of memory allocating new item",
                                "object too large for cache", "access denied", "busy"}) {
    CAPTURE(why);
    for (const Request& change : changes)
      CHECK(reply_to(change, "SERVER_ERROR " + why + "\r\n").is(ReplyFailure::Kind::refused));
  }
}

TEST_CASE("meta wire: incr_or_create knows whether it created") {
  const Request request = Request::incr_or_create("k", 5, 5, never);
  CHECK(reply_to(request, "EN\r\nVA 1\r\n5\r\n").created);
  CHECK_FALSE(reply_to(request, "VA 1 kk f0 c7 t-1\r\n0\r\nVA 1 c8\r\n5\r\n").created);
  CHECK_FALSE(reply_to(request, "EN\r\nVA 2\r\n10\r\n").created);  // created by another client in between
}

TEST_CASE(
    "meta wire: an error of the first half of incr_or_create was once taken for the answer of two requests") {
  const std::vector<Request> requests(2, Request::incr_or_create("k", 1, 1, never));
  const auto reading = read_replies(
      requests, "SERVER_ERROR out of memory\r\nVA 1\r\n1\r\nEN\r\nSERVER_ERROR out of memory\r\n", 1);
  CHECK(reading.answered == 2);
  CHECK(reading.replies[0].number == 1);
  CHECK_FALSE(reading.replies[0].created);
  CHECK(reading.replies[1].is(ReplyFailure::Kind::refused));
}

TEST_CASE("meta wire: text that the server counted up is told with what it was") {
  const Reply reply = reply_to(Request::incr_or_create("k", 1, 1, never),
                               "VA 8 kk f3 c7 t90\r\n5 apples\r\nVA 1 c8\r\n6\r\n");
  CHECK(reply.is(ReplyFailure::Kind::not_a_number));
  CHECK(reply.value == "5 apples");
  CHECK(reply.flags == 3);
  CHECK(reply.age.ttl == std::chrono::seconds(90));
  CHECK(reply.cas.value == 8);
  CHECK(reply.number == 6);
}
