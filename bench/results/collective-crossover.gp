# Which schedule takes the least: docs/pictures/collective-crossover.svg
#
#   BUILD=build bench/crossover.py > bench/results/crossover.txt; gnuplot bench/results/collective-crossover.gp
#
# SPDX-License-Identifier: BSD-3-Clause
data = "bench/results/crossover.txt"
set terminal svg size 900,440 font "sans-serif,13" background "#ffffff"
set output "docs/pictures/collective-crossover.svg"
set multiplot layout 1,2
set border 3
set tics nomirror
set logscale x 4
set xtics ("4 KiB" 4, "64 KiB" 64, "1 MiB" 1024, "16 MiB" 16384)
set bmargin 7
names = system(sprintf("awk '!/^#/ && NF == 6 {print $3}' %s | sort -u", data))
colors = "#1060b0 #c84010 #40a060 #8060b0 #d0a020"
words = "blue red green violet yellow"

unset key
legend = ""
do for [i = 1:words(names)] { legend = legend . (i > 1 ? ", " : "") . sprintf("%s (%s)", word(names, i), word(words, i)) }
set title "Fastest all-reduce of 8 ranks, a site each:\n" . legend font ",14"
set xlabel "size"
set ylabel "round trip between sites, ms"
set xrange [2:131072]
set logscale y
set yrange [0.05:200]
set ytics (0.1, 1, 5, 25, 100)
set style data points
plot for [i = 1:words(names)] sprintf("<awk '!/^#/ && NF == 6 && $3 == \"%s\"' %s", word(names, i), data) \
     using 2:1 with points pt 5 ps 1.9 lc rgb word(colors, i)

set key outside bottom center horizontal maxcols 2 samplen 2 width -5
set title "Multicast to 128 hosts in 8 datacenters, 25 ms" font ",14"
set ylabel "ms"
set xrange [48:90000]
set xtics ("64 KiB" 64, "1 MiB" 1024, "4 MiB" 4096, "16 MiB" 16384, "64 MiB" 65536)
set yrange [10:*]
set ytics (10, 100, 1000, 10000)
eight = sprintf("<awk 'NF == 8 && $1 == 8' %s", data)
set style data linespoints
plot eight using 2:3 pt 7 ps 0.6 lw 2 lc "#1060b0" title "hybrid", \
     "" using 2:4 pt 7 ps 0.6 lc "#c84010" title "binomial-pipeline", \
     "" using 2:5 pt 7 ps 0.6 lc "#40a060" title "chain", \
     "" using 2:6 pt 7 ps 0.6 lc "#8060b0" title "double-tree", \
     "" using 2:7 pt 7 ps 0.6 lc "#d0a020" title "binomial-tree", \
     "" using 2:8 pt 7 ps 0.6 lc "#888888" title "sequential"
unset multiplot
