// What most programs use: runtimes, fork and join, awaited calls, element graphs, heaps, system
// calls. Teams, mailboxes and graph algorithms have headers of their own.
#pragma once

#include "grosr/alloc/heap.hpp"
#include "grosr/alloc/resource.hpp"
#include "grosr/await/awaited.hpp"
#include "grosr/flow/element_graph.hpp"
#include "grosr/run/runtime.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/device.hpp"
#include "grosr/simt/launch.hpp"
#include "grosr/sys/server.hpp"
