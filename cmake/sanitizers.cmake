# Turns WARPZONE_SANITIZE (and libFuzzer's coverage) into compiler and linker flags for everything.
include(CheckCXXSourceCompiles)

if(WARPZONE_FUZZ AND NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "WARPZONE_FUZZ needs clang: configure with CXX=clang++.")
endif()

set(sanitizer_flags "")
if(WARPZONE_SANITIZE)
  list(JOIN WARPZONE_SANITIZE "," names)
  set(sanitizer_flags -fsanitize=${names} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  set(CMAKE_REQUIRED_FLAGS "-fsanitize=${names}")
  # A failure is not cached: the user may install the missing library and try again.
  unset(warpzone_has_sanitizer CACHE)
  check_cxx_source_compiles("int main() { return 0; }" warpzone_has_sanitizer)
  unset(CMAKE_REQUIRED_FLAGS)
  if(NOT warpzone_has_sanitizer)
    message(FATAL_ERROR "${CMAKE_CXX_COMPILER} cannot link with -fsanitize=${names}: "
      "install its sanitizer libraries.")
  endif()
endif()
if(WARPZONE_FUZZ)
  list(APPEND sanitizer_flags -fsanitize=fuzzer-no-link)
endif()
add_compile_options(${sanitizer_flags})
add_link_options(${sanitizer_flags})
