#include <doctest/doctest.h>

#include "common/placement/ring/check.hpp"

using namespace mcds;

namespace {

std::vector<Finding> found(std::string_view profile, std::string_view servers,
                           const PlacementOptions& options = {}) {
  return check_ring(*make_placement(profile, parse_pool(servers), options), options);
}

// Returns "+word" for each problem and "-word" for each note.
std::string words(std::string_view profile, std::string_view servers, const PlacementOptions& options = {}) {
  std::string text;
  for (const Finding& finding : found(profile, servers, options))
    text += (text.empty() ? "" : " ") + std::string(finding.problem ? "+" : "-") + finding.check;
  return text;
}

}  // namespace

TEST_CASE("a sound pool has no findings; one server alone neither") {
  CHECK(words("ketama", "10.0.0.1:1,10.0.0.2:1,10.0.0.3:1") == "");
  CHECK(words("ketama", "10.0.0.1") == "");
  CHECK(words("gomemcache", "10.0.0.1/?0") == "");
}

TEST_CASE("two servers hashed alike are found: one gets no keys") {
  const char* servers = "10.0.0.2:1=10.0.0.1:1,10.0.0.2:1,10.0.0.3:1";
  CHECK(words("ketama", servers).find("+duplicate_identity") == 0);
  CHECK(words("gomemcache", servers) == "-order_dependent");  // it hashes no names
}

TEST_CASE("weights that the client ignores are found, and those it heeds are not") {
  CHECK(words("gomemcache", "10.0.0.1/?3,10.0.0.2/?1") == "+weights_ignored -order_dependent");
  CHECK(words("gomemcache", "10.0.0.1/?3,10.0.0.2/?3") == "-order_dependent");
  CHECK(words("ketama", "10.0.0.1:1/?3,10.0.0.2:1/?1") == "");
  // Copies that fill the pool are not a fault of the client.
  CHECK(words("ketama:copies=2", "10.0.0.1:1/?3,10.0.0.2:1/?1").find("weights_ignored") == std::string::npos);
  CHECK(words("bmemcached", "10.0.0.1:1/?3,10.0.0.2:1/?1").find("weights_ignored") == std::string::npos);
}

TEST_CASE("the default port: as this client hashes it, and a name that says it otherwise") {
  CHECK(words("ketama", "10.0.0.1,10.0.0.2,10.0.0.3") == "-default_port");
  CHECK(words("libketama", "10.0.0.1,10.0.0.2,10.0.0.3") == "-default_port");
  CHECK(words("ketama", "10.0.0.1:11211=10.0.0.1,10.0.0.2:1").find("+default_port") == 0);
}

TEST_CASE("a list whose order decides is found, with how much it decides") {
  const auto findings = found("gomemcache", "10.0.0.1,10.0.0.2,10.0.0.3,10.0.0.4");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].check == std::string("order_dependent"));
  CHECK(findings[0].message.find("100.00%") != std::string::npos);
}

TEST_CASE(
    "servers without keys: none at all on one, a weight too small for a point, a list no power of two") {
  CHECK(words("enyim-ketama-oneatatime", "10.0.0.1:1,10.0.0.2:1,10.0.0.3:1").find("+all_on_one") !=
        std::string::npos);
  CHECK(words("ketama", "10.0.0.1:1/?1,10.0.0.2:1/?1000").find("+all_on_one") != std::string::npos);
  CHECK(words("ketama", "10.0.0.1:1/?1,10.0.0.2:1/?1000,10.0.0.3:1/?1000").find("+idle_server") !=
        std::string::npos);
  CHECK(words("libmemcached-vbucket", "10.0.0.1:1,10.0.0.2:1,10.0.0.3:1").find("+idle_server") !=
        std::string::npos);
}

TEST_CASE("few points are luck") {
  CHECK(words("ketama", "10.0.0.1:1/?1,10.0.0.2:1/?30,10.0.0.3:1/?30").find("+few_points") !=
        std::string::npos);
}

TEST_CASE("a key hash of 15 bits does not reach a circle of 32") {
  CHECK(words("twemproxy-ketama-crc32", "10.0.0.1:1,10.0.0.2:1,10.0.0.3:1").find("+hash_misses_ring") == 0);
}

TEST_CASE("one server by two names is found where names resolve") {
  PlacementOptions options;
  options.resolver.address_of = [](const std::string& name) -> std::optional<std::string> {
    return name == "cache" ? "10.0.0.1" : name;
  };
  CHECK(words("ketama", "cache:1,10.0.0.1:1,10.0.0.2:1", options).find("+same_server") != std::string::npos);
  CHECK(words("ketama", "cache:2,10.0.0.1:1,10.0.0.2:1", options).find("+same_server") == std::string::npos);
}

namespace {

// Returns the findings of the list alone: "+word" for each problem and "-word" for each note.
std::string listed(std::string_view profile, std::string_view servers, Resolver resolver = {}) {
  PlacementOptions options{.resolver = std::move(resolver)};
  options.any_pool = true;
  const Pool pool = parse_pool(servers);
  std::string text;
  for (const Finding& finding : check_list(pool, *make_placement(profile, pool, options), options)) {
    text += (text.empty() ? "" : " ") + std::string(finding.problem ? "+" : "-") + finding.check;
    CHECK(finding.message.find_first_of(":;") != std::string::npos);  // followed by what to do
  }
  return text;
}

}  // namespace

TEST_CASE("what is wrong with a list is found in the list") {
  CHECK(listed("ketama", "10.0.0.1,10.0.0.2") == "");
  CHECK(listed("ketama", "10.0.0.1,10.0.0.2,10.0.0.1") == "+repeated_server");
  CHECK(listed("ketama", "a.example,A.example") == "+repeated_server");
  CHECK(listed("gomemcache", "10.0.0.1,10.0.0.2,10.0.0.1") == "-repeated_server");
  CHECK(listed("ketama", "x=10.0.0.1,x=10.0.0.2") == "+equal_names");
  CHECK(listed("ketama", "Cache1,cache2") == "+mixed_case");
  CHECK(listed("ketama", "cache1.,cache2") == "+trailing_dot");
  CHECK(listed("ketama", "10.0.0.01,10.0.0.2") == "+leading_zero");
  CHECK(listed("ketama", "010.0.0.1,10.00.0.2") == "+leading_zero +leading_zero");
  CHECK(listed("ketama", "10.0.0.0,0.10.20.100") == "");
  CHECK(listed("ketama", "c01,c02") == "");
  CHECK(listed("ketama", "10.0.0.1,10.0.0.2,10.0.0.3:11212") == "-odd_port");
  CHECK(listed("ketama", "10.0.0.1:1,10.0.0.2:2,10.0.0.3:2,10.0.0.4:2") == "-odd_port");
  CHECK(listed("ketama", "10.0.0.1:1,10.0.0.2:2") == "");                        // neither differs from most
  CHECK(listed("ketama", "10.0.0.1:1,10.0.0.2:2,10.0.0.3:3") == "");             // each has another port
  CHECK(listed("ketama", "10.0.0.1:1,10.0.0.1:2,10.0.0.2:1") == "");             // two on one host
  CHECK(listed("ketama", "10.0.0.1:1,10.0.0.2:1,10.0.0.3:2,10.0.0.4:2") == "");  // two and two
  CHECK(listed("ketama", "cache1,10.0.0.2") == "+names_and_addresses");
  CHECK(listed("ketama", "0.0.0.0,10.0.0.2") == "+any_address");
  CHECK(listed("ketama", "127.0.0.1,10.0.0.2") == "+local_server");
  CHECK(listed("ketama", "unix:/m.sock,10.0.0.2") == "+local_server");
  CHECK(listed("ketama", "127.0.0.1:1,localhost:2") == "");
  CHECK(listed("ketama", "tls://10.0.0.1,10.0.0.2") == "-some_tls");
  CHECK(listed("ketama", "10.0.0.1/?0,10.0.0.2") == "+zero_weight");
  CHECK(listed("nginx-hash", "10.0.0.1/?0,10.0.0.2") == "+zero_weight");
  CHECK(listed("ketama:copies=2", "10.0.0.1,10.0.0.2") == "-all_copies");
  CHECK(listed("ketama:copies=2", "10.0.0.1,10.0.0.2,10.0.0.3") == "-replicated");
  const Resolver resolver{[](const std::string& name) {
                            return name == "known" ? std::optional<std::string>("10.0.0.7") : std::nullopt;
                          },
                          {}};
  CHECK(listed("ketama", "known,unknown", resolver) == "+unresolved");
}

TEST_CASE("more servers than libmemcached has room for on its ring") {
  std::string servers;
  for (int i = 1; i <= 101; ++i) servers += (i == 1 ? "" : ",") + std::string("10.0.0.") + std::to_string(i);
  CHECK(listed("ketama", servers) == "+too_many_servers");
  CHECK(listed("pylibmc-consistent", servers) == "+too_many_servers");
  CHECK(listed("libmemcached-default", servers) == "");
  CHECK(listed("dalli", servers) == "");
}

TEST_CASE("keys that are counted on the servers: lopsided when many lie where few should") {
  const auto placement = make_placement("ketama", parse_pool("10.0.0.1:1,10.0.0.2:1,10.0.0.3:1/?2"));
  CHECK(check_counts(*placement, {100, 100, 200}).empty());
  CHECK(check_counts(*placement, {3, 0, 1}).empty());
  const auto findings = check_counts(*placement, {0, 1000, 677});
  // A client that ignores the weights gives each server as many.
  CHECK(
      check_counts(*make_placement("gomemcache", parse_pool("10.0.0.1:1,10.0.0.2:1/?5")), {60, 62}).empty());
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].servers == std::vector<std::size_t>{0});
  CHECK(findings[0].check == std::string("lopsided"));
}
