#pragma once

// A doubly linked list whose links live in the elements: linking and unlinking allocate nothing,
// cannot fail, and unlinking needs no search.
//
// Requires: an element derives from `list_hook`, is not destroyed while it is in a list, and is in
// at most one list at a time. Not thread-safe: the owner of the list guards it.
// Cost: every operation but `size` is constant time; a hook is two pointers.

#include <cstddef>

#include "sluice/base/check.hpp"
#include "sluice/base/race_checked.hpp"

namespace sluice {

class list_hook {
 public:
  list_hook() noexcept { seam::begins_plain(this); }
  list_hook(const list_hook&) = delete;
  list_hook& operator=(const list_hook&) = delete;
  ~list_hook() { check(!linked(), "sluice::list_hook", "to be unlinked before destruction"); }

  bool linked() const noexcept { return next_ != nullptr; }

  void unlink() noexcept {
    check(linked(), "sluice::list_hook", "to be in a list when it is unlinked");
    seam::writes_plain(this);
    seam::writes_plain(prev_);
    seam::writes_plain(next_);
    prev_->next_ = next_;
    next_->prev_ = prev_;
    next_ = prev_ = nullptr;
  }

 private:
  template <class T>
  friend class intrusive_list;

  list_hook* next_ = nullptr;  // both null when in no list
  list_hook* prev_ = nullptr;
};

template <class T>
class intrusive_list {
 public:
  intrusive_list() noexcept { root_.next_ = root_.prev_ = &root_; }
  intrusive_list(const intrusive_list&) = delete;
  intrusive_list& operator=(const intrusive_list&) = delete;
  ~intrusive_list() {
    check(empty(), "sluice::intrusive_list", "to be empty at its destruction");
    root_.next_ = root_.prev_ = nullptr;
  }

  bool empty() const noexcept {
    seam::reads_plain(&root_);
    return root_.next_ == &root_;
  }
  T& front() noexcept { return *static_cast<T*>(root_.next_); }
  T& back() noexcept { return *static_cast<T*>(root_.prev_); }

  // Linear time: for tests and diagnosis.
  std::size_t size() const noexcept {
    std::size_t count = 0;
    for (const list_hook* at = root_.next_; at != &root_; at = at->next_) ++count;
    return count;
  }

  void push_back(T& element) noexcept { link(element, root_.prev_, &root_); }
  void push_front(T& element) noexcept { link(element, &root_, root_.next_); }

  T& pop_front() noexcept {
    check(!empty(), "sluice::intrusive_list", "an element to pop");
    T& first = front();
    static_cast<list_hook&>(first).unlink();
    return first;
  }

  template <class F>
  void for_each(F&& visit) const {
    for (const list_hook* at = root_.next_; at != &root_; at = at->next_) {
      visit(*static_cast<const T*>(at));
    }
  }
  template <class F>
  void for_each(F&& visit) {
    for (list_hook* at = root_.next_; at != &root_;) {
      list_hook* const next = at->next_;  // the visitor may unlink the element
      visit(*static_cast<T*>(at));
      at = next;
    }
  }
  // Visits elements until `visit` returns false.
  template <class F>
  void for_each_while(F&& visit) const {
    const list_hook* at = root_.next_;
    while (at != &root_ && visit(*static_cast<const T*>(at))) at = at->next_;
  }

 private:
  static void link(list_hook& element, list_hook* before, list_hook* after) noexcept {
    check(!element.linked(), "sluice::intrusive_list", "an element that is in no list");
    seam::writes_plain(&element);
    seam::writes_plain(before);
    seam::writes_plain(after);
    element.prev_ = before;
    element.next_ = after;
    before->next_ = &element;
    after->prev_ = &element;
  }

  list_hook root_;
};

}  // namespace sluice
