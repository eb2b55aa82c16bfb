#pragma once

// Encodes job arguments and results of your own types as JSON, and decodes them with errors that
// name the place in the text.
//
// Supported: bool, integers, floating point, std::string, std::optional, std::vector, std::map and
// std::unordered_map with string keys, std::array, enumerations (as their number), and `payload`
// (unchanged). A struct lists its fields:
//
//     struct thumbnail {
//       std::string url;
//       int width = 320;
//
//       static constexpr auto fields =
//           std::tuple{field("url", &thumbnail::url), optional_field("width", &thumbnail::width)};
//     };
//
//     engine.push({.kind = "thumbnail", .args = encode(thumbnail{.url = u})});
//     result<thumbnail> t = decode<thumbnail>(job.args);
//
// A type with another JSON form specialises `json_codec<T>` with
//   static T read(json::json_reader& in);                   // errors by in.refuse("expected ...")
//   static void write(json::json_writer& out, const T& value);
//
// Guarantees: decoding throws only std::bad_alloc. A missing field is an error unless it is an
// optional_field (which keeps the struct's default) or a std::optional; an unknown field is
// skipped, so that producers can be newer than workers. A number that does not fit its type is an
// error, it is never truncated. `decode` restores every value that `encode` wrote, except floating
// point values that are not finite: they are written as null.

#include <array>
#include <bitset>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "jobs/json/json_reader.hpp"
#include "jobs/json/json_writer.hpp"
#include "jobs/model/job.hpp"
#include "jobs/model/result.hpp"

namespace sluice::jobs {

template <class C, class M>
struct field_of {
  std::string_view name;
  M C::*member;
  bool required = true;
};

template <class C, class M>
constexpr field_of<C, M> field(std::string_view name, M C::*member) {
  return {name, member, true};
}
template <class C, class M>
constexpr field_of<C, M> optional_field(std::string_view name, M C::*member) {
  return {name, member, false};
}

template <class T>
struct json_codec;

template <class T>
concept readable = std::same_as<T, payload> || requires(json::json_reader& in) {
  { json_codec<T>::read(in) } -> std::same_as<T>;
};
template <class T>
concept writable = std::same_as<T, payload> || requires(json::json_writer& out, const T& value) {
  json_codec<T>::write(out, value);
};

namespace detail {

template <class T>
concept has_fields = requires {
  std::tuple_size<std::remove_cvref_t<decltype(T::fields)>>::value;
};
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

// The reader's integers are signed; this reads up to 2^64 - 1.
std::uint64_t read_unsigned(json::json_reader& in);
// The key escaped for JSON, without the quotes.
std::string escaped_key(std::string_view key);
error not_json(std::string_view name, const payload& given);
error no_fit(std::string_view name, const error& why);

}  // namespace detail

template <>
struct json_codec<bool> {
  static bool read(json::json_reader& in) { return in.boolean(); }
  static void write(json::json_writer& out, bool value) { out.value(value); }
};

template <class T>
requires(std::integral<T> && !std::same_as<T, bool>) struct json_codec<T> {
  static T read(json::json_reader& in) {
    using range = std::numeric_limits<T>;
    if constexpr (std::signed_integral<T>) {
      return static_cast<T>(in.whole(range::min(), range::max()));
    } else if constexpr (sizeof(T) < sizeof(std::uint64_t)) {
      return static_cast<T>(in.natural(0, range::max()));
    } else {
      return detail::read_unsigned(in);
    }
  }
  static void write(json::json_writer& out, T value) { out.value(value); }
};

template <std::floating_point T>
struct json_codec<T> {
  static T read(json::json_reader& in) {
    constexpr double most = std::is_same_v<T, float>
                                ? static_cast<double>(std::numeric_limits<float>::max())
                                : std::numeric_limits<double>::max();
    return static_cast<T>(in.number(-most, most));
  }
  static void write(json::json_writer& out, T value) { out.value(static_cast<double>(value)); }
};

template <class T>
requires std::is_enum_v<T>
struct json_codec<T> {
  using number = json_codec<std::underlying_type_t<T>>;
  static T read(json::json_reader& in) { return static_cast<T>(number::read(in)); }
  static void write(json::json_writer& out, T value) {
    number::write(out, static_cast<std::underlying_type_t<T>>(value));
  }
};

template <>
struct json_codec<std::string> {
  static std::string read(json::json_reader& in) { return in.string(); }
  static void write(json::json_writer& out, std::string_view value) { out.value(value); }
};

template <class T>
struct json_codec<std::optional<T>> {
  static std::optional<T> read(json::json_reader& in) {
    if (in.skip_null()) return std::nullopt;
    return json_codec<T>::read(in);
  }
  static void write(json::json_writer& out, const std::optional<T>& value) {
    if (!value) {
      out.null();
    } else {
      json_codec<T>::write(out, *value);
    }
  }
};

template <class T>
struct json_codec<std::vector<T>> {
  static std::vector<T> read(json::json_reader& in) {
    std::vector<T> values;
    for (in.begin_array(); in.next_element();) values.push_back(json_codec<T>::read(in));
    return values;
  }
  static void write(json::json_writer& out, const std::vector<T>& values) {
    out.begin_array();
    for (const auto& value : values) json_codec<T>::write(out, value);
    out.end_array();
  }
};

template <class T, std::size_t N>
struct json_codec<std::array<T, N>> {
  static std::array<T, N> read(json::json_reader& in) {
    std::array<T, N> values{};
    std::size_t count = 0;
    for (in.begin_array(); in.next_element(); ++count) {
      if (count < N) {
        values[count] = json_codec<T>::read(in);
      } else {
        in.skip();
      }
    }
    if (in.ok() && count != N) {
      in.refuse_object("expected " + std::to_string(N) + " elements, found " +
                       std::to_string(count));
    }
    return values;
  }
  static void write(json::json_writer& out, const std::array<T, N>& values) {
    out.begin_array();
    for (const auto& value : values) json_codec<T>::write(out, value);
    out.end_array();
  }
};

namespace detail {

template <class Map>
struct map_codec {
  static Map read(json::json_reader& in) {
    Map values;
    in.begin_object();
    for (std::string_view key; in.next_key(key);) {
      const std::string name(key);
      in.name_member(name);
      values.insert_or_assign(name, json_codec<typename Map::mapped_type>::read(in));
    }
    return values;
  }
  static void write(json::json_writer& out, const Map& values) {
    out.begin_object();
    for (const auto& [key, value] : values) {
      out.key(escaped_key(key));
      json_codec<typename Map::mapped_type>::write(out, value);
    }
    out.end_object();
  }
};

}  // namespace detail

template <class T, class Less>
struct json_codec<std::map<std::string, T, Less>>
    : detail::map_codec<std::map<std::string, T, Less>> {};
template <class T>
struct json_codec<std::unordered_map<std::string, T>>
    : detail::map_codec<std::unordered_map<std::string, T>> {};

template <detail::has_fields T>
struct json_codec<T> {
  static constexpr std::size_t count = std::tuple_size_v<std::remove_cvref_t<decltype(T::fields)>>;

  static T read(json::json_reader& in) {
    T value{};
    std::bitset<count + 1> seen;  // + 1: std::bitset<0> is avoided for a struct without fields
    in.begin_object();
    for (std::string_view key; in.next_key(key);) {
      if (!read_one(in, key, value, seen, std::make_index_sequence<count>())) in.skip();
    }
    if (in.ok()) refuse_missing(in, seen, std::make_index_sequence<count>());
    return value;
  }
  static void write(json::json_writer& out, const T& value) {
    out.begin_object();
    std::apply([&](const auto&... f) { (write_one(out, value, f), ...); }, T::fields);
    out.end_object();
  }

 private:
  template <class Seen, std::size_t... I>
  static bool read_one(json::json_reader& in, std::string_view key, T& value, Seen& seen,
                       std::index_sequence<I...>) {
    const auto try_field = [&](std::size_t i, const auto& f) {
      if (key != f.name) return false;
      using member = std::remove_cvref_t<decltype(value.*f.member)>;
      in.name_member(f.name);
      value.*f.member = json_codec<member>::read(in);
      seen.set(i);
      return true;
    };
    return (try_field(I, std::get<I>(T::fields)) || ...);
  }
  template <class Seen, std::size_t... I>
  static void refuse_missing(json::json_reader& in, const Seen& seen, std::index_sequence<I...>) {
    const auto check_field = [&](std::size_t i, const auto& f) {
      using member = std::remove_cvref_t<decltype(std::declval<T&>().*f.member)>;
      if (seen[i] || !f.required || detail::is_optional<member> || !in.ok()) return;
      in.refuse_object("the field " + std::string(f.name) + " is missing");
    };
    (check_field(I, std::get<I>(T::fields)), ...);
  }
  template <class Field>
  static void write_one(json::json_writer& out, const T& value, const Field& f) {
    using member = std::remove_cvref_t<decltype(value.*f.member)>;
    out.key(f.name);
    json_codec<member>::write(out, value.*f.member);
  }
};

// Converts a value to arguments for a push, or to a result.
template <writable T>
payload encode(const T& value) {
  if constexpr (std::is_same_v<T, payload>) {
    return value;
  } else {
    payload made;
    json::json_writer out(made.data);
    json_codec<T>::write(out, value);
    return made;
  }
}
inline payload encode(std::string_view text) {
  payload made;
  json::json_writer(made.data).value(text);
  return made;
}
inline payload encode(const char* text) {
  return encode(std::string_view(text));
}

// `name` is how an error message refers to the value. Fails with `invalid`.
template <readable T>
result<T> decode(const payload& given, std::string_view name = "the value") {
  if constexpr (std::is_same_v<T, payload>) {
    return given;
  } else {
    if (given.type != content_type::json) return detail::not_json(name, given);
    json::json_reader in(given.data, 1, json::json_reader::unknown_fields::skipped);
    T value = json_codec<T>::read(in);
    if (auto read = in.finish(); !read) return detail::no_fit(name, read.error());
    return value;
  }
}

}  // namespace sluice::jobs
