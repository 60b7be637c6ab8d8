// Blocks as tensors of DLPack, by which NumPy, PyTorch, CuPy and JAX exchange arrays, and tensors
// as blocks: https://dmlc.github.io/dlpack. Tensors are those of <dlpack/dlpack.h>, without
// versions.
#pragma once

#include "grosr/flow/datablock.hpp"

struct DLManagedTensor;

namespace grosr::flow {

/// A tensor of what a block holds, at its place in a memory; copied there first if it is not there.
/// Waits until it is there. Extents are z, y, x, without the first ones that are 1; a variable
/// block has one, what it holds. Until the tensor's deleter is called, the block is read: who wants
/// to write it gets error(misuse). The deleter may be called by any thread. Throws as
/// datablock::read(), and error(invalid_option) for elements that are no integers and no floating
/// point numbers; error(not_built) where DLPack was not found when this was built.
DLManagedTensor* to_dlpack(const datablock& b, space_number s);

/// A block whose elements are the tensor's, which it takes over. They stay where they are, in
/// memory of a device of `m`, pinned memory, or, where `m` has no GPU, any memory of the host,
/// until the block is gone or is written in another memory, and no stream uses them any more; then
/// m.free_borrowed() calls the deleter, as threads of an executor and from_dlpack() do, without a
/// lock of theirs. What is in other memory of the host is copied, and the deleter called at once. A
/// tensor that to_dlpack() made of a block of `m` is that block. The elements are to be there: what
/// still writes them has to be waited for. Who writes the block where the tensor is writes the
/// tensor. Throws error(invalid_option), and then has not taken it over, for more than three
/// extents, one of 0, elements that do not lie close together or at multiples of their size, other
/// types than integers and floating point numbers of 32 and 64 bits, and memory that `m` does not
/// have; error(out_of_memory); error(not_built).
datablock from_dlpack(block_memory& m, DLManagedTensor* tensor);

}  // namespace grosr::flow
