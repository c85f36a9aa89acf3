// The exchange of arrays with Python: kernels read and write NumPy's arrays in place, and return new arrays.
//
// An array must have the type that the kernel declares, be contiguous in C's order, and be writable if the kernel
// writes into it. Any other is a TypeError: what is written into a silent copy would be lost.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <type_traits>

#include "arrays.hpp"

namespace quercus {

enum class Kind { boolean, int8, uint8, int16, uint16, int32, uint32, int64, uint64, real };

template <class T>
constexpr Kind kind_of() {
    using Value = std::remove_const_t<T>;
    if constexpr (std::is_same_v<Value, bool>) return Kind::boolean;
    else if constexpr (std::is_same_v<Value, int8_t>) return Kind::int8;
    else if constexpr (std::is_same_v<Value, uint8_t>) return Kind::uint8;
    else if constexpr (std::is_same_v<Value, int16_t>) return Kind::int16;
    else if constexpr (std::is_same_v<Value, uint16_t>) return Kind::uint16;
    else if constexpr (std::is_same_v<Value, int32_t>) return Kind::int32;
    else if constexpr (std::is_same_v<Value, uint32_t>) return Kind::uint32;
    else if constexpr (std::is_same_v<Value, int64_t>) return Kind::int64;
    else if constexpr (std::is_same_v<Value, uint64_t>) return Kind::uint64;
    else {
        static_assert(std::is_same_v<Value, double>, "NumPy has no such type of values here");
        return Kind::real;
    }
}

/// Return the annotation of an array of this type in the stubs.
template <class T>
constexpr auto array_name() {
    using nanobind::detail::const_name;
    constexpr Kind kind = kind_of<T>();
    constexpr auto type = [] {
        if constexpr (kind == Kind::boolean) return const_name("bool_");
        else if constexpr (kind == Kind::int8) return const_name("int8");
        else if constexpr (kind == Kind::uint8) return const_name("uint8");
        else if constexpr (kind == Kind::int16) return const_name("int16");
        else if constexpr (kind == Kind::uint16) return const_name("uint16");
        else if constexpr (kind == Kind::int32) return const_name("int32");
        else if constexpr (kind == Kind::uint32) return const_name("uint32");
        else if constexpr (kind == Kind::int64) return const_name("int64");
        else if constexpr (kind == Kind::uint64) return const_name("uint64");
        else return const_name("float64");
    }();
    return const_name("numpy.typing.NDArray[numpy.") + type + const_name("]");
}

/// Write the memory and the shape of an array; false if its kind, number of dimensions or order is another.
bool read_array(PyObject* object, Kind kind, int dimensions, bool written, void** data, Index* shape) noexcept;

/// Return a new array, and write its memory; null with Python's error set if there is no memory for it.
PyObject* new_array(Kind kind, int dimensions, const Index* shape, void** data) noexcept;

void bind_likelihood(nanobind::module_ module);
void bind_growth(nanobind::module_ module);
void bind_forest(nanobind::module_ module);

}  // namespace quercus

namespace nanobind::detail {

template <class T>
struct type_caster<quercus::Vector<T>> {
    NB_TYPE_CASTER(quercus::Vector<T>, quercus::array_name<T>())

    bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
        void* data;
        quercus::Index n;
        if (!quercus::read_array(source.ptr(), quercus::kind_of<T>(), 1, !std::is_const_v<T>, &data, &n)) return false;
        value = quercus::Vector<T>(static_cast<T*>(data), static_cast<std::size_t>(n));
        return true;
    }
};

template <class T>
struct type_caster<quercus::Matrix<T>> {
    NB_TYPE_CASTER(quercus::Matrix<T>, quercus::array_name<T>())

    bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
        void* data;
        quercus::Index shape[2];
        if (!quercus::read_array(source.ptr(), quercus::kind_of<T>(), 2, !std::is_const_v<T>, &data, shape))
            return false;
        value = {static_cast<T*>(data), shape[0], shape[1]};
        return true;
    }
};

template <class T>
struct type_caster<std::vector<T>> {
    static constexpr auto Name = quercus::array_name<T>();
    template <class>
    using Cast = std::vector<T>;

    static handle from_cpp(const std::vector<T>& values, rv_policy, cleanup_list*) noexcept {
        void* data;
        quercus::Index n = quercus::length(values);
        PyObject* array = quercus::new_array(quercus::kind_of<T>(), 1, &n, &data);
        if (array) std::copy(values.begin(), values.end(), static_cast<T*>(data));
        return array;
    }
};

template <class T>
struct type_caster<quercus::OwnedMatrix<T>> {
    static constexpr auto Name = quercus::array_name<T>();
    template <class>
    using Cast = quercus::OwnedMatrix<T>;

    static handle from_cpp(const quercus::OwnedMatrix<T>& values, rv_policy, cleanup_list*) noexcept {
        void* data;
        quercus::Index shape[2] = {values.rows, values.columns};
        PyObject* array = quercus::new_array(quercus::kind_of<T>(), 2, shape, &data);
        quercus::Matrix<const T> view = values;
        if (array) std::copy_n(view.data, values.rows * values.columns, static_cast<T*>(data));
        return array;
    }
};

}  // namespace nanobind::detail
