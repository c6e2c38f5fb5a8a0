# What every sekali target is compiled with: warnings, include folders, and a cache where there is one.
find_program(SEKALI_CCACHE ccache)
if(SEKALI_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${SEKALI_CCACHE})
endif()

add_library(sekali_compile INTERFACE)
target_compile_options(
    sekali_compile INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast
                             -Woverloaded-virtual)
if(SEKALI_WERROR)
    target_compile_options(sekali_compile INTERFACE -Werror)
endif()

# One room of the tree: a static library whose sources are listed by its own folder.
# Rooms include each other as "engine/ports.hpp"; users include "sekali/client.hpp".
function(sekali_room name)
    add_library(sekali_${name} STATIC ${ARGN})
    target_include_directories(
        sekali_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
                              $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
    target_link_libraries(sekali_${name} PRIVATE $<BUILD_INTERFACE:sekali_compile>)
endfunction()
