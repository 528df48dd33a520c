// Exceptions that allocate and are thrown across threads, and what C++ itself asks for.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

extern "C" void *PyGILState_GetThisThreadState() { return nullptr; }

struct Guard {
    int &count;
    ~Guard() { count++; }
};

static void nested(int depth, int &unwound) {
    Guard guard{unwound};
    std::vector<char> held(100000);
    if (depth == 0) throw std::runtime_error(std::string(200000, 'x'));
    nested(depth - 1, unwound);
}

// "new" or "malloc": who is asked for what stays. "vain": some of what `new` is asked for cannot be had.
int main(int count, char **arguments) {
    static char *volatile kept;
    kept = count > 1 && arguments[1] == std::string("new") ? new char[40000000] : static_cast<char *>(std::malloc(40000000));
    bool vain = count > 2 && arguments[2] == std::string("vain");
    int unwound = 0, caught = 0;
    for (int round = 0; round < 100; round++) {
        std::exception_ptr kept;
        std::thread thread([&] {
            try {
                nested(10, unwound);
            } catch (...) {
                kept = std::current_exception();
            }
        });
        thread.join();
        try {
            std::rethrow_exception(kept);
        } catch (const std::runtime_error &error) {
            caught += std::string(error.what()).size() == 200000;
        }
        if (vain) try {
            std::unique_ptr<char[]> none(new char[static_cast<std::size_t>(-1) / 4]);
            std::printf("%p\n", static_cast<void *>(none.get()));
        } catch (const std::bad_alloc &) {
            caught++;
        }
        struct alignas(256) Wide { char bytes[100000]; };
        std::unique_ptr<Wide> wide(new Wide);
        if (reinterpret_cast<std::size_t>(wide.get()) % 256 != 0) return 2;
    }
    return unwound == 1100 && caught == (vain ? 200 : 100) ? 0 : 1;
}
