# Where the CPU time of 64 KiB messages over loopback goes: docs/pictures/profile.svg
#
#   BUILD=… bench/profile.py before > bench/results/profile.txt     a build without what was changed
#   bench/profile.py now >> bench/results/profile.txt
#   gnuplot bench/results/profile.gp
#
# SPDX-License-Identifier: BSD-3-Clause
here = "bench/results/"
set terminal svg size 720,440 font "sans-serif,13" background "#ffffff"
set output "docs/pictures/profile.svg"
set title "64 KiB messages over loopback, 16 in flight: CPU time of each end" font ",15"
set xlabel "build, and end (raw: GSO/GRO and nothing else)" offset 0,-1
set ylabel "us for each message"
set style data histogram
set style histogram rowstacked
set style fill solid border -1
set boxwidth 0.7
set yrange [0:*]
set format x "%s"
set grid ytics linecolor "#dddddd"
set border 3
set tics nomirror
set bmargin at screen 0.4
set key at screen 0.53,0.21 center top reverse Left maxcols 2 maxrows 4

# One line a bar: build, end, then a column for each kind of work. The raw blaster of the last run.
rows = sprintf("<awk 'NF == 10 && $1 != \"raw\"' %sprofile.txt; awk '$1 == \"raw\"' %sprofile.txt | tail -n 2", \
               here, here)
plot rows using 5:xtic(sprintf("%s\n%s", strcol(1), strcol(2))) lc "#1060b0" title "kernel: copies of payload", \
     "" using 7 lc "#80b0e0" title "kernel: data, all else", \
     "" using 6 lc "#c84010" title "kernel: control messages", \
     "" using 4 lc "#e8a080" title "kernel: waking threads", \
     "" using 8 lc "#cccccc" title "kernel: going to sleep", \
     "" using 3 lc "#40a060" title "iCRC", \
     "" using 9 lc "#f0d060" title "Longhaul and program"
