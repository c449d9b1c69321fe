#include <doctest/doctest.h>

#include <algorithm>

#include "common/placement/ring/check.hpp"

using namespace mcds;

namespace {

std::vector<Finding> found(std::string_view profile, std::string_view servers,
                           const PlacementOptions& options = {}) {
  return check_ring(*make_placement(profile, parse_pool(servers), options), options);
}

// "+word" for a problem, "-word" for a note.
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
  CHECK(words("gomemcache", servers) == "-order_dependent");  // hashes no names
}

TEST_CASE("weights that the client ignores are found, and those it heeds are not") {
  CHECK(words("gomemcache", "10.0.0.1/?3,10.0.0.2/?1") == "+weights_ignored -order_dependent");
  CHECK(words("gomemcache", "10.0.0.1/?3,10.0.0.2/?3") == "-order_dependent");
  CHECK(words("ketama", "10.0.0.1:1/?3,10.0.0.2:1/?1") == "");
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
