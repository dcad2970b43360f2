# SPDX-License-Identifier: GPL-3.0-or-later
#
# cmake -DOUT=F.c "-DFILES=name=path|path,..." -P embed.cmake: writes the files (joined when several
# paths stand for one name) as the table html__assets of report/html_private.h.

set(code "/* Made by report/web/embed.cmake. */\n#include \"report/html_private.h\"\n\n")
set(table "")
string(REPLACE "," ";" entries "${FILES}")
set(index 0)
foreach(entry IN LISTS entries)
  string(REGEX MATCH "^([^=]+)=(.*)$" _ "${entry}")
  set(name "${CMAKE_MATCH_1}")
  string(REPLACE "|" ";" paths "${CMAKE_MATCH_2}")
  set(hex "")
  foreach(path IN LISTS paths)
    file(READ "${path}" one HEX)
    string(APPEND hex "${one}")
  endforeach()
  string(LENGTH "${hex}" digits)
  math(EXPR bytes "${digits} / 2")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
  string(APPEND code "static const unsigned char asset_${index}[] = {${hex}0};\n")
  string(APPEND table "    {\"${name}\", asset_${index}, ${bytes}},\n")
  math(EXPR index "${index} + 1")
endforeach()
string(APPEND code "\nconst html__asset html__assets[] = {\n${table}    {0, 0, 0},\n};\n")
file(WRITE "${OUT}" "${code}")
