// Items that a server keeps on flash: memcached with extstore (-o ext_path=FILE).
//
// Such a server moves idle items to a file. Reads, cas, touch and removals work on them as on all others.
// What changes a value in place does not: append answers NOT_STORED, as if the item were missing or full, and
// incr and decr answer that the value is not a number. Here these answers are looked into: the item is read,
// and written back by cas with the change.
//
//   a rival's write in between: the cas fails, and the request is sent again. The item is in memory now.
//   the item goes in between: an append is not_stored, a count is sent again.
//   the cas's reply is lost: unknown, as the change's own would have been.
//   there is no room for the longer value: not_stored.
//   a touch in between is undone. What is left of the ttl is written back, in whole seconds.
// Nothing is written back on a server that does not tell the ttl (before 1.6): the item counts as full, or as
// no number.
//
// Round trips: none where append stores. The first not_stored on a server with meta commands costs one, which
// asks whether it has such a file. If it has, every not_stored costs one more, and two if the item is there.
#pragma once

#include <optional>
#include <vector>

#include "common/cluster/decorators.hpp"

namespace mcds {

class FlashItems final : public Decorator {
 public:
  explicit FlashItems(std::unique_ptr<Cluster> inner);
  using Cluster::execute;
  std::vector<Reply> execute(std::span<const Request> batch) override;
  std::unique_ptr<Pending> begin(std::vector<Request> batch) override;

  static constexpr int most_rounds = 6;

 private:
  using Places = std::vector<std::size_t>;  // in a batch

  bool has_flash(std::size_t server);
  bool may_be_on_flash(const Request& request, const Reply& reply);
  void settle(std::span<const Request> batch, std::vector<Reply>& replies);
  // Those that are to be sent again.
  Places write_back(std::span<const Request> batch, const Places& places, std::vector<Reply>& replies);

  SystemClock clock_;
  std::vector<std::optional<bool>> flash_;
};

}  // namespace mcds
