# SPDX-License-Identifier: GPL-2.0
# usage: gnuplot -e "dir='DIRECTORY'; what='SUBTITLE'" plot.gp
set terminal pngcairo noenhanced size 1500,1100 font "DejaVu Sans,12"
set output dir."/comparison.png"
data = dir."/comparison.dat"

set style data histograms
set style histogram clustered gap 1
set style fill solid 0.9 border -1
set boxwidth 0.9
set grid ytics
set key outside top right horizontal width 3
set logscale y
set xtics nomirror scale 0
# By hand: gnuplot's own choice depends on where the range begins.
set ytics nomirror (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000, 10000, 30000)
set lmargin 12
set bmargin 4
set tmargin 4

stock = "#8c8c8c"
dma = "#1f77b4"
higher(a, b) = a > b ? a : b

stats data using (higher($2, $3)) nooutput prefix "most_mb"
stats data using (higher($2, $3) == $2 ? $3 : $2) nooutput prefix "least_mb"
stats data using (higher($4, $5)) nooutput prefix "most_cpu"
stats data using (higher($4, $5) == $4 ? $5 : $4) nooutput prefix "least_cpu"

set multiplot layout 2,1 title "pmem_dma and the stock nd_pmem, EMULATED\n".what

set title "Throughput (higher is better), numbers: pmem_dma / nd_pmem"
set ylabel "MB/s"
set yrange [least_mb_min / 2 : most_mb_max * 3]
plot data using 2:xtic(1) title "nd_pmem" linecolor rgb stock, \
     data using 3 title "pmem_dma" linecolor rgb dma, \
     data using 0:(higher($2, $3)):(sprintf("x %.2f", $3 / $2)) \
	with labels offset 0,0.7 notitle

set title "CPU cost (lower is better), numbers: pmem_dma / nd_pmem"
set ylabel "CPU seconds per GB"
set yrange [least_cpu_min / 2 : most_cpu_max * 3]
plot data using 4:xtic(1) title "nd_pmem" linecolor rgb stock, \
     data using 5 title "pmem_dma" linecolor rgb dma, \
     data using 0:(higher($4, $5)):(sprintf("x %.2f", $5 / $4)) \
	with labels offset 0,0.7 notitle
unset multiplot
