// Streams run late: work waits in their queues until something waits for it.
#pragma once

#include "state.h"

#include <deque>
#include <functional>
#include <thread>

namespace emulator {
// What others can wait for: done when the work that carries it is.
struct Ticket {
    bool done = false;
    double seconds = 0;
    Stream *stream = nullptr;
    // What comes before whatever waits for it.
    Clock clock;
};
using TicketPtr = std::shared_ptr<Ticket>;

using Action = std::function<CUresult()>;

struct Work {
    const char *kind;
    Action run;
    std::vector<TicketPtr> after;
    TicketPtr ticket;
    // Whether it can run although all that it comes after is done; without one it always can. What never can, hangs.
    std::function<bool()> ready = nullptr;
};

// Memory that a graph allocates: its address is the graph's as long as that lives.
struct Owned {
    uintptr_t start;
    // Whether the graph frees it too; else whether a launch has left it to be freed by others.
    bool freed_inside = false, left = false;

    explicit Owned(uintptr_t start) : start(start) {}
    Owned(const Owned &) = delete;
    ~Owned();
};

struct Graph {
    struct Node {
        const char *kind;
        Action run;
        std::vector<size_t> after;
    };
    std::vector<Node> nodes;
    std::vector<std::shared_ptr<Owned>> owned;
};

// A graph in the making: the streams that write it.
struct Capture {
    std::unique_ptr<Graph> graph;
    Stream *origin;
    int mode;
    std::thread::id thread;
    bool broken = false;
    std::set<Stream *> streams;
};
using CapturePtr = std::shared_ptr<Capture>;

struct Stream {
    Context *context;
    // Whether it takes turns with the null stream.
    bool blocking;
    int priority = 0;
    bool destroyed = false;
    std::deque<Work> queue;
    TicketPtr last;
    CapturePtr capture;
    // The nodes that the next captured one comes after.
    std::vector<size_t> frontier;
    // Its number and how much was submitted to it, and what comes before what is submitted next.
    unsigned number = take_numbers(1), submitted = 0;
    Clock known;
};

struct Event {
    Context *context;
    bool timing;
    TicketPtr ticket;
    CapturePtr capture;
    std::vector<size_t> nodes;
};

Stream *make_stream(Context &context, bool blocking, int priority);
// The stream of a handle: null is the null stream, 1 is too, 2 is the thread's.
Stream &stream_of(Context &context, CUstream handle);

// Queues work, or makes it a node of the graph that the stream writes. The ticket is null for a node.
TicketPtr submit(Stream &stream, const char *kind, Action run);

// Runs what must run until the ticket is done, and perhaps more; then throws the context's error if it has one.
void wait_for(Context &context, const TicketPtr &ticket);
void synchronize(Stream &stream);
void synchronize(Context &context);
// Everything on every device.
void run_all();
// Something that can run, if the dice say so.
void run_some();

// Throws, and breaks the capture, where one is under way that forbids calls like this one.
void refuse_in_capture(const Context &context);
// Throws where a launch would allocate again what an earlier one has left; else it will be there.
void leave_allocated(const Graph &graph);
[[noreturn]] void break_capture(Stream &stream, CUresult error);
} // namespace emulator
