# Paths of R's glmnet on problems written by elastic_net.py: CPU seconds of each fit, and coefficients where asked for.
# Arguments: folder, family, threshold, whether to write coefficients (0 or 1).
suppressMessages(library(glmnet))
arguments <- commandArgs(TRUE)
folder <- arguments[1]
family <- arguments[2]
threshold <- as.numeric(arguments[3])
write_coefficients <- arguments[4] == "1"
# All lambdas are fitted: glmnet would stop where the deviance hardly changes.
invisible(glmnet.control(fdev = 0, devmax = 1))

read_numbers <- function(name) {
  path <- file.path(folder, name)
  readBin(path, "double", file.size(path) / 8)
}

jobs <- read.csv(file.path(folder, "jobs.csv"))
seconds <- numeric(nrow(jobs))
for (i in seq_len(nrow(jobs))) {
  job <- jobs[i, ]
  A <- matrix(read_numbers(paste0("A", job$job, ".bin")), ncol = job$columns)
  y <- read_numbers(paste0("y", job$job, ".bin"))
  u <- read_numbers(paste0("u", job$job, ".bin"))
  lambda <- read_numbers(paste0("lambda", job$job, ".bin"))
  began <- proc.time()
  fit <- glmnet(A, y, family = family, alpha = job$alpha, lambda = lambda, penalty.factor = u,
                standardize = FALSE, thresh = threshold, maxit = 1e8)
  ended <- proc.time()
  seconds[i] <- sum((ended - began)[1:2])
  if (length(fit$lambda) != length(lambda)) stop("glmnet did not fit every lambda")
  if (write_coefficients) {
    writeBin(as.vector(rbind(fit$a0, as.matrix(fit$beta))), file.path(folder, paste0("w", job$job, ".bin")))
  }
}
cat(seconds, sep = "\n")
