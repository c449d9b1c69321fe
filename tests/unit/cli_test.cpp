#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "common/base/errors.hpp"
#include "tools/cli/config.hpp"
#include "tools/cli/exit_status.hpp"
#include "tools/cli/parse.hpp"

namespace mcds::cli_test {

namespace {

std::vector<std::string> words_of(const std::vector<std::string>& lines) {
  std::vector<std::string> words;
  for (const std::string& line : lines) words.push_back(line.substr(0, line.find('\t')));
  return words;
}

bool offers(const std::vector<std::string>& typed, const std::string& word) {
  const auto words = words_of(completions(typed));
  return std::find(words.begin(), words.end(), word) != words.end();
}

Invocation parsed(const std::vector<std::string>& words) {
  Invocation invocation;
  parse(words, invocation);
  return invocation;
}

}  // namespace

TEST_CASE("global options are accepted before and after the command, in every spelling") {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"-s", "a", "--timeout", "2s", "counter", "get", "x"},
                                             {"counter", "-s", "a", "get", "x", "--timeout=2s"},
                                             {"counter", "get", "x", "--servers=a", "--timeout", "2s"},
                                             {"-sa", "counter", "get", "--timeout", "2", "x"}}) {
    const Invocation invocation = parsed(words);
    CHECK(invocation.globals.servers == "a");
    CHECK(invocation.globals.timeout == std::chrono::seconds(2));
    CHECK(invocation.verb->name() == "get");
  }
}

TEST_CASE("a dash alone is a value, -- ends the options, brackets stay together") {
  CHECK_NOTHROW(parsed({"counter", "incr", "-"}));
  CHECK_NOTHROW(parsed({"counter", "incr", "--", "-name"}));
  CHECK_NOTHROW(parsed({"key", "[1,2]"}));
  CHECK_THROWS_AS(parsed({"counter", "incr", "-name"}), InvalidInput);
  CHECK_THROWS_AS(parsed({"counter", "get"}), InvalidInput);
  CHECK_THROWS_AS(parsed({"counter", "get", "x", "--timeout", "1", "--timeout", "2"}), InvalidInput);
}

TEST_CASE("everything behind -- belongs to the child, options and another -- too") {
  CHECK_NOTHROW(parsed({"lock", "run", "x", "--", "ls", "--nonsense", "--", "-o", "yaml"}));
  CHECK_THROWS_AS(parsed({"lock", "run", "x"}), InvalidInput);
  CHECK_THROWS_AS(parsed({"lock", "run", "x", "--"}), InvalidInput);
}

TEST_CASE("help and version ask for no argument") {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"--help"},
                                             {"-h"},
                                             {"--version"},
                                             {"counter", "--help"},
                                             {"counter", "incr", "-h"},
                                             {"--help", "lock", "run"}}) {
    CHECK(parsed(words).text.has_value());
  }
  const std::string help = *parsed({"counter", "incr", "--help"}).text;
  CHECK(help.find("Examples:") < help.find("Options:"));
}

TEST_CASE("the error of a broken command line comes out in the mode asked for") {
  Invocation invocation;
  CHECK_THROWS_AS(parse({"counter", "incr", "--nonsense", "-o", "text"}, invocation), InvalidInput);
  CHECK(invocation.globals.output == "text");
}

TEST_CASE("completion offers commands, verbs, options, choices and asks the shell for the rest") {
  CHECK(offers({""}, "counter"));
  CHECK(offers({"cou"}, "counter"));
  CHECK_FALSE(offers({"cou"}, "lock"));
  CHECK(offers({"counter", ""}, "incr"));
  CHECK(offers({"-o", "value", "counter", "i"}, "incr"));
  CHECK(offers({"counter", "incr", "--"}, "--ttl"));
  CHECK(offers({"counter", "incr", "--"}, "--servers"));
  CHECK_FALSE(offers({"counter", "get", "--"}, "--ttl"));
  CHECK(offers({"-o", ""}, "json"));
  CHECK(offers({"--output=v"}, "--output=value"));
  CHECK(offers({"--as", "gom"}, "gomemcache"));
  CHECK(offers({"--config", ""}, "!files"));
  CHECK(offers({"key", "@"}, "!files"));
  CHECK(offers({"lock", "run", "x", "--", ""}, "!command 4"));
  CHECK(offers({"lock", "run", "x", "--", "tar", "--cre"}, "!command 4"));
  CHECK(completions({"counter", "incr", "--", ""}).empty());
}

TEST_CASE("config: later files win key by key, errors name file and line") {
  Config config;
  read_config("pool = a\ntimeout = 2s\n[pool a]\nservers = one,two\nprofile = gomemcache\n", "first", config);
  read_config("; comment\n[pool a]\nservers = three\n[pool b]\nnamespace = b:\n", "second", config);
  CHECK(config.text("", "pool") == "a");
  CHECK(config.text("", "timeout") == "2s");
  CHECK(config.text("pool a", "servers") == "three");
  CHECK(config.text("pool a", "profile") == "gomemcache");
  CHECK(config.text("pool b", "namespace") == "b:");
  CHECK_THROWS_WITH_AS(read_config("\nserver = x\n", "f", config),
                       "f:2: unknown key 'server'; did you mean 'servers'?", Failure);
  CHECK_THROWS_WITH_AS(read_config("[pool a]\nservers = h:0\n", "f", config),
                       "f:2: server 'h:0': the port must be a number from 1 to 65535", Failure);
  CHECK_THROWS_AS(read_config("[pool ]\nservers = a\n", "f", config), Failure);
  CHECK_THROWS_AS(read_config("[pool a\n", "f", config), Failure);
}

TEST_CASE("config: long lines, long names and comments are read whole, and a wrong line is named") {
  Config config;
  const std::string list = "10.0.0.1:11211" + [] {
    std::string more;
    for (int i = 0; i < 99; ++i) more += ",10.0.1." + std::to_string(i) + ":11211";
    return more;
  }();
  const std::string name(200, 'p');
  read_config("\xef\xbb\xbf# " + std::string(197, 'x') + "servers = evil:1\r\n\tservers : " + list +
                  " ; old\r\n[pool " + name + "1]\n  ; none = \xff\n# \xff\n\n[pool " + name +
                  "2]\nnamespace = a;b:\t; c",
              "f", config);
  CHECK(config.text("", "servers") == list);
  CHECK(config.sections.size() == 2);
  CHECK(config.text("pool " + name + "2", "namespace") == "a;b:");
  const auto wrong = [](const std::string& text, const char* message) {
    Config other;
    CHECK_THROWS_WITH_AS(read_config(text, "f", other), message, Failure);
  };
  wrong("[pool a] servers = b:1\n", "f:1: neither 'key = value' nor [section]");
  wrong("\n[pool a]x\n", "f:2: neither 'key = value' nor [section]");
  wrong("# a\n[pool]\n# b\nservers = a:1\n", "f:2: unknown section '[pool]'; write [pool NAME] or [doctor]");
  wrong("timeout = 1s\nservers\n", "f:2: neither 'key = value' nor [section]");
  wrong("timeout = 1s\n\xff = 1\n", "f:2: not UTF-8");
  wrong("[pool a:\xff]\n", "f:1: not UTF-8");
}

TEST_CASE(
    "config: what says who we are does not go to servers that another file, or another section, names") {
  const std::string first = "[pool a]\nservers = one\nuser = u\npassword_file = /p\n";
  Config config;
  read_config(first, "first", config);
  CHECK_THROWS_WITH_AS(read_config("[pool a]\nservers = two\n", "second", config),
                       "second: [pool a] sets its own servers, but user comes from first and belongs to "
                       "other servers; set user in "
                       "second too, or rename the section",
                       Failure);
  Config found;
  read_config(first, "first", found);
  CHECK_THROWS_AS(read_config("[pool a]\nuser = u\nservers_from = file:/f\n", "second", found), Failure);
  Config own;
  read_config(first, "first", own);
  read_config("[pool a]\nservers = two\nuser = v\npassword_file = /q\n[pool b]\nservers = x\n", "second",
              own);
  CHECK(own.text("pool a", "password_file") == "/q");
  for (const char* secret :
       {"user = u", "password_file = /p", "tls_cert = /c", "tls_key = /k", "tls_name = n"}) {
    Config top;
    read_config(std::string("servers = one\n") + secret + "\n", "first", top);
    CHECK_THROWS_AS(read_config("servers = two\n", "second", top), Failure);
  }
  Config twice;
  CHECK_THROWS_WITH_AS(read_config(first + "[pool a]\nservers = two\n", "f", twice),
                       "f:6: servers is set twice in [pool a]", Failure);
  Config begin;
  CHECK_THROWS_AS(read_config("servers = one\ntimeout = 1s\nservers = two\n", "f", begin), Failure);
}

TEST_CASE("the exit code of a batch is that of its worst line") {
  using enum ExitStatus;
  CHECK(worse(ok, no) == no);
  CHECK(worse(try_again, no) == try_again);
  CHECK(worse(bad_data, try_again) == bad_data);
  CHECK(worse(refused, bad_data) == refused);
  CHECK(worse(refused, unknown_outcome) == unknown_outcome);
  CHECK(worse(unavailable, unknown_outcome) == unavailable);
}

TEST_CASE("each kind of failure has an exit code and a word of its own") {
  using enum ErrorCode;
  std::set<std::string> words;
  for (const ErrorCode code :
       {usage, bad_data, cannot_read, unavailable, internal, system, cannot_write, output_failed, try_again,
        refused, access_denied, configuration, lock_lost, unknown_outcome}) {
    CHECK(words.insert(name_of(code)).second);
    const auto line = std::ranges::find(all_exit_codes(), status_of(code), &ExitCode::status);
    CHECK(std::string(line->word) == name_of(code));
  }
  CHECK(words.contains("usage"));
  CHECK(!words.contains(""));
}

}  // namespace mcds::cli_test
