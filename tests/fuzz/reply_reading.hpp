// Reading whatever a server might say: shared by the unit test that feeds it by hand and the fuzzer.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/cluster/wire/wire.hpp"

namespace mcds::test {

struct Reading {
  std::vector<Reply> replies;
  std::size_t answered = 0;  // requests, from the first
  std::size_t position = 0;  // bytes used
  meta::ReplyReader::Step last = meta::ReplyReader::Step::need_more;
};

// Reads the replies to `requests`, as a connection does, from `answer` in pieces of `piece` bytes.
inline Reading read_replies(std::span<const Request> requests, std::string_view answer, std::size_t piece,
                            bool in_meta = true, bool quiet = false) {
  using Step = meta::ReplyReader::Step;
  Reading result;
  result.replies.resize(requests.size());
  std::vector<const Request*> asked;
  std::vector<Reply*> replies;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    asked.push_back(&requests[i]);
    replies.push_back(&result.replies[i]);
  }
  std::vector<meta::Command> commands;
  std::string sent;
  for (std::size_t next = 0; next < requests.size(); next += commands.back().count) {
    commands.push_back(
        meta::encode(asked, next, sent, {.meta = in_meta, .shows_cas = quiet, .quiet = quiet}));
  }
  meta::ReplyReader reader;
  std::size_t command = 0;
  for (std::size_t arrived = 0; command < commands.size() && arrived < answer.size();) {
    arrived = std::min(answer.size(), arrived + piece);
    while (command < commands.size()) {
      result.last =
          reader.read(commands[command], asked, replies, answer.substr(0, arrived), result.position,
                      in_meta ? ServerProtocol::CommandSet::meta : ServerProtocol::CommandSet::classic);
      if (result.position > arrived) std::abort();
      if (result.last == Step::need_more) break;
      if (result.last == Step::progress) continue;
      if (result.last != Step::done && result.last != Step::no_meta) return result;
      result.answered += commands[command++].count;
    }
  }
  return result;
}

}  // namespace mcds::test
