// A program that is not linked to the library: loads the shared object named by its argument, and
// runs it on a new thread, which ends before the object is unloaded.
#include <cstdio>
#include <thread>

#include <dlfcn.h>

int main(int, char** arguments) {
  void* const plugin = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) {
    std::printf("%s\n", dlerror());
    return 100;
  }
  auto* const run = reinterpret_cast<int (*)()>(dlsym(plugin, "run_plugin"));
  if (run == nullptr) return 101;
  int result = 102;
  std::thread([&] { result = run(); }).join();
  return dlclose(plugin) == 0 ? result : 103;
}
