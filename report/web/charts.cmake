# SPDX-License-Identifier: GPL-3.0-or-later
#
# cmake -DNODE=... -DNPM=... -DWEB=report/web -DOUT=DIR -P charts.cmake: bundles the charts into
# OUT/charts.js.  Where that cannot be done, charts.js is empty and OUT/missing.txt says why: the
# report then has tables in place of charts.

file(MAKE_DIRECTORY "${OUT}")

# finish(<why>): leaves an empty bundle and the reason.
macro(finish why)
  file(WRITE "${OUT}/charts.js" "")
  file(WRITE "${OUT}/missing.txt" "${why}")
  message(STATUS "report: no charts: ${why}")
  return()
endmacro()

if(NOT NODE OR NOT NPM)
  finish("node and npm were not there when the program was built")
endif()

file(COPY "${WEB}/package.json" "${WEB}/package-lock.json" "${WEB}/charts_entry.js" "${WEB}/bundle.mjs"
  DESTINATION "${OUT}")
execute_process(
  COMMAND "${NPM}" ci --omit=dev --no-audit --no-fund --loglevel=error
  WORKING_DIRECTORY "${OUT}" RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
if(failed)
  message(STATUS "${said}")
  finish("npm could not install Apache ECharts when the program was built")
endif()

execute_process(
  COMMAND "${NODE}" bundle.mjs
  WORKING_DIRECTORY "${OUT}" RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
if(failed)
  message(STATUS "${said}")
  finish("the charts could not be bundled when the program was built")
endif()
file(WRITE "${OUT}/missing.txt" "")
