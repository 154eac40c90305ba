// Threads for work that falls into independent items.
#pragma once

#include <cstddef>
#include <functional>

namespace firn {

// Calls work(0) ... work(count - 1), each once, on up to `jobs` threads that take items in this order; 0: on
// as many as the machine runs at once. Returns when all have returned. If items throw, the exception of the
// first of them is thrown again.
void run_parallel(size_t count, unsigned jobs, const std::function<void(size_t)>& work);

} // namespace firn
