# How many times faster erasure codes are than selective repeat by timeout: docs/pictures/erasure-figure9.svg
#
#   build/bench/bench_erasure_sim > docs/pictures/erasure.txt
#   gnuplot docs/pictures/erasure-figure9.gp
#
# SPDX-License-Identifier: BSD-3-Clause
here = "docs/pictures/"
set terminal svg size 900,620 font "sans-serif,12" background "#ffffff"
set output here."erasure-figure9.svg"
set datafile missing "-"

# The table under the title "SCHEME: how many times faster than sr-rto, WHAT": sizes down, losses across.
map(scheme, what) = sprintf("<awk '/^%s: how many times faster than sr-rto, %s$/ {on = 1; next} ".\
                            "on && NF == 0 {if (rows) exit} on && NF {rows++; print}' %serasure.txt", \
                            scheme, what, here)

set palette defined (0 "#2166ac", 0.95 "#f7f7f7", 1.05 "#f7f7f7", 4 "#f4a582", 13 "#b2182b")
set cbrange [0:13]
unset colorbox
set tics scale 0
set yrange [] reverse
set xlabel "share of packets that are lost"
set multiplot layout 2,2 title "Erasure codes of 32 + 8 over 400 Gbit/s and 25 ms: times faster than sr-rto, in simulation" \
    font ",15"
do for [scheme in "ec:mds ec:xor"] {
    do for [what in "mean p99.9"] {
        set title scheme.", ".what.(what eq "mean" ? "" : " (where there are 1,000 messages)") font ",13"
        plot map(scheme, what) matrix rowheaders columnheaders using 1:2:3 with image pixels notitle, \
             map(scheme, what) matrix rowheaders columnheaders using 1:2:($3 == $3 ? sprintf("%.2f", $3) : "") \
                 with labels font ",10" notitle
    }
}
unset multiplot
