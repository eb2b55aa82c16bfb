module sluice.example/bench/peer

go 1.19
