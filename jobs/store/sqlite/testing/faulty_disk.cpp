#include "jobs/store/sqlite/testing/faulty_disk.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "jobs/store/sqlite/testing/faulty_disk_impl.hpp"
#include "sluice/base/atomic.hpp"
#include "sluice/base/check.hpp"

namespace sluice::jobs::testing {
namespace {

std::string next_name() {
  static atomic<std::uint64_t> last{0};
  return "faulty-disk-" + std::to_string(last.fetch_add(1, relaxed) + 1);
}

constexpr auto unlimited = std::numeric_limits<std::uint64_t>::max();

}  // namespace

faulty_disk::impl::impl(options o) : options_(o), name_(next_name()), chance_(o.seed) {
  register_vfs();
}

faulty_disk::impl::~impl() {
  const std::lock_guard hold(mutex_);
  check(open_files_ == 0, "faulty_disk", "its files to be closed before its destruction");
  sqlite3_vfs_unregister(&vfs_);
}

// Numbers an event; returns true if the power is still on after it.
bool faulty_disk::impl::make_event(disk_event::op type, std::string_view file, std::uint64_t offset,
                                   std::string_view bytes) {
  events_.push_back({events_.size() + 1, type, std::string(file), offset,
                     options_.keep_bytes ? std::string(bytes) : std::string()});
  if (off_at_ && events_.size() >= *off_at_) {
    off_ = true;
    events_.back().type = disk_event::op::failed;
  }
  return !off_;
}

int faulty_disk::impl::fail(int code, std::string_view file, std::uint64_t offset) {
  ++faults_;
  make_event(disk_event::op::failed, file, offset);
  return code;
}

std::uint64_t faulty_disk::impl::used() const {
  std::uint64_t bytes = 0;
  for (const auto& [name, at] : folder_) bytes += at.seen ? at.seen->data.size() : 0;
  return bytes;
}

std::uint64_t faulty_disk::impl::free_bytes() const {
  if (!capacity_) return unlimited;
  const auto now = used();
  return now < *capacity_ ? *capacity_ - now : 0;
}

bool faulty_disk::impl::happens(double probability) {
  return probability > 0 && static_cast<double>(chance_.next() >> 11) * 0x1.0p-53 < probability;
}

void faulty_disk::impl::bind(entry& at, disk_node_ptr node) {
  at.seen = node;
  at.dirty.push_back(std::move(node));
}

void faulty_disk::impl::sync_folder() {
  for (auto& [name, at] : folder_) {
    at.stored = at.seen;
    at.dirty.clear();
  }
}

int faulty_disk::impl::open(const char* name, int flags, disk_node_ptr& opened, bool& created) {
  const std::lock_guard hold(mutex_);
  created = false;
  if (off_) return SQLITE_CANTOPEN;
  if (name == nullptr) {  // a temporary file: private and not durable
    opened = std::make_shared<disk_node>();
    ++open_files_;
    return SQLITE_OK;
  }
  auto& at = folder_[name];
  if (!at.seen) {
    if ((flags & SQLITE_OPEN_CREATE) == 0) return SQLITE_CANTOPEN;
    auto made = std::make_shared<disk_node>();
    made->name = name;
    bind(at, std::move(made));
    created = true;
    if (!make_event(disk_event::op::create, name)) return SQLITE_CANTOPEN;
  }
  opened = at.seen;
  ++open_files_;
  return SQLITE_OK;
}

int faulty_disk::impl::remove(std::string_view name, bool wants_sync) {
  const std::lock_guard hold(mutex_);
  if (off_) return SQLITE_IOERR_DELETE;
  const auto found = folder_.find(name);
  if (found == folder_.end() || !found->second.seen) return SQLITE_IOERR_DELETE_NOENT;
  bind(found->second, nullptr);
  if (!make_event(disk_event::op::remove, name)) return SQLITE_IOERR_DELETE;
  if (wants_sync) sync_folder();
  return SQLITE_OK;
}

bool faulty_disk::impl::exists(std::string_view name) const {
  const std::lock_guard hold(mutex_);
  const auto found = folder_.find(name);
  return found != folder_.end() && found->second.seen != nullptr &&
         found->second.seen->data.size() > 0;
}

int faulty_disk::impl::read(disk_node& from, void* buffer, int count, std::int64_t offset) {
  const std::lock_guard hold(mutex_);
  if (off_) return SQLITE_IOERR_READ;
  if (happens(read_errors_)) {
    ++faults_;
    return SQLITE_IOERR_READ;
  }
  const auto wanted = static_cast<std::size_t>(count);
  const auto got = from.data.read(buffer, wanted, static_cast<std::uint64_t>(offset));
  if (got == wanted) return SQLITE_OK;
  std::memset(static_cast<char*>(buffer) + got, 0, wanted - got);
  return SQLITE_IOERR_SHORT_READ;
}

int faulty_disk::impl::write(disk_node& node, std::string_view bytes, std::int64_t offset) {
  const std::lock_guard hold(mutex_);
  if (off_) return SQLITE_IOERR_WRITE;
  const auto at = static_cast<std::uint64_t>(offset);
  if (happens(short_writes_)) {
    node.data.write(bytes.substr(0, chance_.below(static_cast<std::uint32_t>(bytes.size()))), at);
    return fail(SQLITE_IOERR_WRITE, node.name, at);
  }
  const auto end = at + bytes.size();
  const auto growth = end > node.data.size() ? end - node.data.size() : 0;
  if (const auto left = free_bytes(); growth > left) {
    const auto beyond = growth - left;
    node.data.write(bytes.substr(0, bytes.size() - std::min<std::uint64_t>(beyond, bytes.size())),
                    at);
    return fail(SQLITE_FULL, node.name, at);
  }
  node.data.write(bytes, at);
  return make_event(disk_event::op::write, node.name, at, bytes) ? SQLITE_OK : SQLITE_IOERR_WRITE;
}

int faulty_disk::impl::truncate(disk_node& node, std::int64_t size) {
  const std::lock_guard hold(mutex_);
  if (off_) return SQLITE_IOERR_TRUNCATE;
  const auto length = static_cast<std::uint64_t>(size);
  node.data.truncate(length);
  return make_event(disk_event::op::truncate, node.name, length) ? SQLITE_OK
                                                                 : SQLITE_IOERR_TRUNCATE;
}

int faulty_disk::impl::sync(disk_node& node, bool with_folder) {
  const std::lock_guard hold(mutex_);
  if (off_) return SQLITE_IOERR_FSYNC;
  if (failing_syncs_ > 0 && (failing_file_.empty() || failing_file_ == node.name)) {
    --failing_syncs_;
    if (after_failed_sync_ == failed_sync::forgets) node.data.forget_dirty();
    if (after_failed_sync_ == failed_sync::reverts) node.data.revert_dirty();
    return fail(SQLITE_IOERR_FSYNC, node.name, 0);
  }
  // If the power fails during the event, the operation is not done.
  if (!make_event(disk_event::op::sync, node.name)) return SQLITE_IOERR_FSYNC;
  node.data.sync();
  if (with_folder) sync_folder();
  ++syncs_;
  return SQLITE_OK;
}

std::int64_t faulty_disk::impl::size(const disk_node& node) const {
  const std::lock_guard hold(mutex_);
  return static_cast<std::int64_t>(node.data.size());
}

faulty_disk::faulty_disk(options o) : impl_(std::make_unique<impl>(o)) {}
faulty_disk::faulty_disk(std::unique_ptr<impl> node) : impl_(std::move(node)) {}
faulty_disk::~faulty_disk() = default;

const std::string& faulty_disk::vfs() const noexcept {
  return impl_->name_;
}

std::unique_ptr<faulty_disk> faulty_disk::power_cut(std::uint64_t seed) const {
  auto after = std::make_unique<impl>(options{seed, impl_->options_.keep_bytes});
  const std::lock_guard hold(impl_->mutex_);
  auto& chance = after->chance_;
  for (const auto& [name, at] : impl_->folder_) {
    const auto which = chance.below(static_cast<std::uint32_t>(at.dirty.size()) + 1);
    const auto& survivor = which == 0 ? at.stored : at.dirty[which - 1];
    if (!survivor) continue;
    auto node = std::make_shared<disk_node>();
    node->name = name;
    node->data = survivor->data.after_power_cut(chance);
    after->folder_[name] = {node, node, {}};
  }
  return std::unique_ptr<faulty_disk>(new faulty_disk(std::move(after)));
}

void faulty_disk::power_off_after(std::uint64_t events) {
  check(events > 0, "faulty_disk", "the power to go at an event that is still to come");
  const std::lock_guard hold(impl_->mutex_);
  impl_->off_at_ = impl_->events_.size() + events;
}

void faulty_disk::power_off() {
  const std::lock_guard hold(impl_->mutex_);
  impl_->off_ = true;
}

bool faulty_disk::is_off() const {
  const std::lock_guard hold(impl_->mutex_);
  return impl_->off_;
}

void faulty_disk::fail_next_sync(std::uint64_t count, failed_sync then, std::string_view of) {
  const std::lock_guard hold(impl_->mutex_);
  impl_->failing_file_ = of;
  impl_->failing_syncs_ = count;
  impl_->after_failed_sync_ = then;
}

void faulty_disk::fails_with(int system_errno) {
  const std::lock_guard hold(impl_->mutex_);
  impl_->errno_ = system_errno;
}

void faulty_disk::full_after(std::uint64_t bytes) {
  const std::lock_guard hold(impl_->mutex_);
  impl_->capacity_ = impl_->used() + bytes;
}

void faulty_disk::free() {
  const std::lock_guard hold(impl_->mutex_);
  impl_->capacity_.reset();
}

std::uint64_t faulty_disk::free_bytes() const {
  const std::lock_guard hold(impl_->mutex_);
  return impl_->free_bytes();
}

void faulty_disk::short_writes(double probability) {
  const std::lock_guard hold(impl_->mutex_);
  impl_->short_writes_ = probability;
}

void faulty_disk::read_errors(double probability) {
  const std::lock_guard hold(impl_->mutex_);
  impl_->read_errors_ = probability;
}

bool faulty_disk::corrupt(std::string_view file, std::uint64_t offset, std::uint64_t bytes) {
  const std::lock_guard hold(impl_->mutex_);
  const auto found = impl_->folder_.find(file);
  if (found == impl_->folder_.end() || !found->second.seen) return false;
  auto& data = found->second.seen->data;
  if (data.size() < offset + bytes) return false;
  data.corrupt(offset, bytes, impl_->chance_);
  return true;
}

std::uint64_t faulty_disk::now() const {
  const std::lock_guard hold(impl_->mutex_);
  return impl_->events_.size();
}

std::vector<disk_event> faulty_disk::events() const {
  const std::lock_guard hold(impl_->mutex_);
  return impl_->events_;
}

std::uint64_t faulty_disk::syncs() const {
  const std::lock_guard hold(impl_->mutex_);
  return impl_->syncs_;
}

std::uint64_t faulty_disk::faults() const {
  const std::lock_guard hold(impl_->mutex_);
  return impl_->faults_;
}

std::uint64_t faulty_disk::bytes_used() const {
  const std::lock_guard hold(impl_->mutex_);
  return impl_->used();
}

std::vector<std::string> faulty_disk::files() const {
  const std::lock_guard hold(impl_->mutex_);
  std::vector<std::string> names;
  for (const auto& [name, at] : impl_->folder_) {
    if (at.seen) names.push_back(name);
  }
  return names;
}

}  // namespace sluice::jobs::testing
