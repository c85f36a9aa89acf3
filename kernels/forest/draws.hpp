// Draws as keyed hashes: a function of the seed, the member, the path and the attribute (theory §10.2).
//
// A node has a key; its children's keys, the attributes that it considers and their tests are hashes of that key and a
// number. A running generator would make a tree depend on the order in which its nodes were grown.
#pragma once

#include <algorithm>
#include <bit>

#include "../arrays.hpp"

namespace quercus::forest {

constexpr int LEFT = 0, RIGHT = 1;  // numbers from which a node's key derives the keys of its children
constexpr int PLACES = 2;           // the first of the numbers from which it derives the keys of its draws

/// Return splitmix64 of a key and a number: the key of item `number` below the key.
inline uint64_t derived_key(uint64_t key, int64_t number) {
    uint64_t z = key + (static_cast<uint64_t>(number) + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/// Return the number in [0, count) that a key determines, all equally likely; `count` is below 2^32.
inline int64_t number_below(uint64_t key, int64_t count) {
    return static_cast<int64_t>(((key >> 32) * static_cast<uint64_t>(count)) >> 32);
}

/// Return the number in [low, high) that a key determines, all equally likely; `low` is not negative.
///
/// Ranges between powers of two are halved, and each half is chosen with a probability in proportion to its part of
/// [low, high). A small change of the bounds therefore rarely changes the number.
inline int64_t number_between(uint64_t key, int64_t low, int64_t high) {
    if (low + 1 == high) return low;
    const auto goes_right = [=](int64_t begin, int64_t half) {
        const int64_t middle = begin + half;
        const int64_t on_left = std::min(middle, high) - std::max(begin, low);
        const int64_t on_right = std::min(middle + half, high) - std::max(middle, low);
        const int64_t drawn = number_below(derived_key(key, middle), on_left + on_right);
        return (on_left <= 0) | ((on_right > 0) & (drawn >= on_left));
    };
    auto half = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(low ^ (high - 1)) + 1) / 2);
    int64_t begin = low & -2 * half;
    bool right = goes_right(begin, half);
    while (half > 1) {  // draw in both halves before one is chosen: the hashes do not depend on each other
        const int64_t next = half / 2;
        const bool next_on_left = goes_right(begin, next), next_on_right = goes_right(begin + half, next);
        begin += half & -int64_t{right};
        right = (right & next_on_right) | (!right & next_on_left);
        half = next;
    }
    return begin + right;
}

/// Return the random bit that a key determines.
inline bool is_heads(uint64_t key) { return key & 1; }

/// Return the key of a member's root.
inline uint64_t member_key(uint64_t seed, int64_t member) { return derived_key(derived_key(seed, 0), member); }

}  // namespace quercus::forest
