module quercus-examples

go 1.19
