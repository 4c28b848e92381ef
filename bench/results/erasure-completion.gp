# Completion time of a message over loss, by each scheme, as multiples of the ideal: erasure-completion.svg
#
#   build/bench/bench_erasure_sim > bench/results/erasure.txt
#   build/bench/bench_erasure_sim --schemes hybrid --size 128 --part figure9 > bench/results/erasure-hybrid.txt
#   gnuplot bench/results/erasure-completion.gp
#
# SPDX-License-Identifier: BSD-3-Clause
here = "bench/results/"
set terminal svg size 720,420 font "sans-serif,13" background "#ffffff"
set output "docs/pictures/erasure-completion.svg"
set title "128 MiB over 400 Gbit/s and 25 ms, in simulation" font ",15"
set xlabel "share of packets lost"
set ylabel "mean completion time / ideal"
set logscale x
set format x "10^{%L}"
set xrange [5e-7:2e-1]
set yrange [0:*]
set bmargin at screen 0.3
set key at screen 0.53,0.15 center top reverse Left maxcols 3 maxrows 2
set border 3
set tics nomirror
set grid ytics lc rgb "#dddddd"
rows(scheme) = sprintf("<awk '$1 == \"%s\" && $2 == \"128MiB\" && $4 == 1 {print $3, $7 / $6}' %serasure.txt %serasure-hybrid.txt", \
                       scheme, here, here)
plot rows("sr-rto") with linespoints lw 2 pt 7 ps 0.6 lc rgb "#b2182b" title "sr-rto", \
     rows("sr-nack") with linespoints lw 2 pt 7 ps 0.6 lc rgb "#f4a582" title "sr-nack", \
     rows("ec:xor") with linespoints lw 2 pt 7 ps 0.6 lc rgb "#92c5de" title "ec:xor, 32 + 8", \
     rows("ec:mds") with linespoints lw 2 pt 7 ps 0.6 lc rgb "#2166ac" title "ec:mds, 32 + 8", \
     rows("hybrid") with linespoints lw 2 pt 7 ps 0.6 lc rgb "#1b7837" title "hybrid"
