#include "embed_remote/bare.h"

#include "base/buf.h"
#include "base/sync.h"
#include "base/thread.h"
#include "ingest/corpus.h"
#include "support.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { THREADS_MAX = 32, STAGGER_US = 25000, INPUT_BYTES = 900, ANSWER_PIECE = 65536 };

struct client {
    int port;
    qr_str request;
    int64_t from_us, until_us;
};

QR_NORETURN static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void write_request(struct qr_buf *out)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf body = {0};
    char word[CORPUS_WORD_SIZE];
    uint64_t state = 5;
    qr_buf_add_text(&body, "{\"model\":\"bench\",\"input\":[");
    for (int i = 0; i < BARE_INPUTS; i++) {
        const size_t begin = body.len;
        qr_buf_add_text(&body, i ? ",\"" : "\"");
        while (body.len - begin < INPUT_BYTES) {
            qr_buf_add(&body, (qr_str){word, corpus_add_word(word, &state)});
            qr_buf_add_char(&body, ' ');
        }
        qr_buf_add_char(&body, '"');
    }
    qr_buf_add_text(&body, "]}");
    qr_buf_printf(out, "POST /v1/embeddings HTTP/1.1\r\nHost: bench\r\nContent-Length: %zu\r\n\r\n", body.len);
    qr_buf_add(out, qr_buf_str(&body));
}

static int connect_to(int port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int on = 1;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        fail("bench: the model server");
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static void send_all(int fd, qr_str bytes)
{
    while (bytes.len > 0) {
        const ssize_t sent = send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
        if (sent <= 0) {
            fail("bench: sending to the model server");
        }
        bytes = (qr_str){bytes.ptr + sent, bytes.len - (size_t)sent};
    }
}

/* Until all that its header announces is there. */
static void read_answer(int fd)
{
    char piece[ANSWER_PIECE];
    size_t left = SIZE_MAX;
    while (left > 0) {
        const ssize_t got = recv(fd, piece, left == SIZE_MAX ? sizeof piece - 1 : QR_MIN(left, sizeof piece - 1), 0);
        if (got <= 0) {
            fail("bench: reading from the model server");
        }
        if (left == SIZE_MAX) { /* the header is sent with the beginning of the body */
            piece[got] = '\0';
            const char *length = strcasestr(piece, "Content-Length:"), *end = strstr(piece, "\r\n\r\n");
            if (!length || !end) {
                fprintf(stderr, "bench: the model server's answer cannot be read\n");
                exit(1);
            }
            left = (size_t)atoll(length + strlen("Content-Length:")) + (size_t)(end + 4 - piece);
        }
        left -= (size_t)got;
    }
}

static void *run_client(void *arg)
{
    struct client *client = arg;
    const int fd = connect_to(client->port);
    qr_thread_lower(); /* as the threads are that embed documents */
    bench_sleep_us(QR_MAX(client->from_us - bench_now_us(), (int64_t)0));
    while (bench_now_us() < client->until_us) {
        send_all(fd, client->request);
        read_answer(fd);
    }
    close(fd);
    return NULL;
}

/* One begins after the other, so that their answers are not all made at the same moment. */
static void ask(int port, int threads, double seconds)
{
    QR_CLEANUP(qr_buf_done) struct qr_buf request = {0};
    struct client clients[THREADS_MAX];
    pthread_t ids[THREADS_MAX];
    qr_err err;
    write_request(&request);
    const int64_t began_us = bench_now_us();
    for (int i = 0; i < threads; i++) {
        clients[i] = (struct client){port, qr_buf_str(&request), began_us + (int64_t)i * STAGGER_US,
                                     began_us + (int64_t)(seconds * 1e6)};
        bench_must(qr_thread_start(&ids[i], "bare", run_client, &clients[i], &err), &err);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
    }
}

struct bare_request {
    int port, threads;
    double seconds;
};

static void run_apart(const void *arg, void *ret)
{
    const struct bare_request *request = arg;
    ask(request->port, request->threads, request->seconds);
    *(bool *)ret = true;
}

double bare_rate(const struct server_limits *limits, int threads, double seconds)
{
    struct served *server = server_begin(limits);
    const struct bare_request request = {server_port(server), QR_MIN(threads, (int)THREADS_MAX), seconds};
    bool is_done;
    bench_apart(run_apart, &request, &is_done, sizeof is_done);
    server_end(server);
    const double rate = server_rate(server, SERVER_STEADY_FROM, SERVER_STEADY_TO);
    server_free(server);
    return rate;
}
