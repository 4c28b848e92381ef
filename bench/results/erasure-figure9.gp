# How many times faster erasure codes are than selective repeat by timeout: docs/pictures/erasure-figure9.svg
#
#   build/bench/bench_erasure_sim > bench/results/erasure.txt
#   gnuplot bench/results/erasure-figure9.gp
#
# SPDX-License-Identifier: BSD-3-Clause
here = "bench/results/"
set terminal svg noenhanced size 900,680 font "sans-serif,12" background "#ffffff"
set output "docs/pictures/erasure-figure9.svg"
set datafile missing "-"

# The table under the title "SCHEME: how many times faster than sr-rto, WHAT": sizes down, losses across.
map(scheme, what) = sprintf("<awk '/^%s: how many times faster than sr-rto, %s$/ {on = 1; next} ".\
                            "on && NF == 0 {if (rows) exit} on && NF {rows++; print}' %serasure.txt", \
                            scheme, what, here)

# As "longhaul plan --map": green is faster, red slower.
set palette defined (-1 "#d8604c", 0 "#f7f7f7", 3.7 "#4caf78")
set cbrange [-1:3.7]
set cbtics ("1/2" -1, "1" 0, "2" 1, "4" 2, "8" 3)
set cblabel "times faster than sr-rto (green: faster, red: slower)"
set colorbox user origin screen 0.9,0.2 size screen 0.025,0.6
set tics scale 0
set yrange [] reverse
set xlabel "share of packets lost"
set ylabel "message size"
set multiplot layout 2,2 margins screen 0.11,0.87,0.1,0.88 spacing screen 0.13,0.17 title "Erasure codes of 32 + 8 over 400 Gbit/s and 25 ms: times faster than sr-rto, in simulation" \
    font ",15"
do for [scheme in "ec:mds ec:xor"] {
    do for [what in "mean p99.9"] {
        set title scheme.", ".what.(what eq "mean" ? "" : " (where there are 1,000 messages)") font ",13"
        plot map(scheme, what) matrix rowheaders columnheaders using 1:2:(log($3) / log(2)) with image pixels notitle, \
             map(scheme, what) matrix rowheaders columnheaders using 1:2:($3 == $3 ? sprintf("%.2f", $3) : "") \
                 with labels font ",10" notitle
        unset colorbox
    }
}
unset multiplot
