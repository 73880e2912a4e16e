// records of scalars: in one array, in structs, aligned and not, updated in part
enum { PX, PY, VX, VY, FIELDS = 4 };
struct Body { float x, y, z; float mass; };
struct Pair { float first; /* of two */ float second; };
__global__ void move(float* p, float dt, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        if (p[i * FIELDS + PX] > 0.5f) p[i * FIELDS + VX] += 0.25f * dt;
        p[i * FIELDS + PX] += p[i * FIELDS + VX] * dt;
        p[FIELDS * i + PY] = p[i * FIELDS + PY] + p[i * 4 + VY] * dt;
    }
}
__global__ void energy(const Body* b, const Pair* __restrict__ q, Pair* __restrict__ r, float* out, int n) {
    const int i = threadIdx.x + blockDim.x * blockIdx.x;
    if (i >= n) return;
    float e = b[i].mass * (b[i].x * b[i].x + b[i].y);  // not z
    for (int k = 0; k < 3; ++k) { e += q[i].first * q[k].second + q[k].first; }
    out[i] = e;
    r[i].second = q[i].first + e; r[i].first = q[i].second - e;
    if (e > 1) { r[i].first *= 2; }
}
__global__ void bytes(const unsigned char* __restrict__ rgba, unsigned char* __restrict__ out, short* s, int n) {
    int i = blockIdx.x * 32 + threadIdx.x; if (i >= n) return;
    int at = 4 * i;
    out[at] = rgba[at + 2] * 2; out[at + 1] = rgba[at + 1]; out[at + 2] = rgba[at]; out[at + 3] = rgba[3 + at] + out[at];
    s[2 * i + 1] = s[2 * i] + i; s[i * 2] += s[2 * i + 1] % 7;
}
// what must be refused, or survive: shared records, early returns, gaps
__global__ void hostile(float* p, float* q, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    p[4 * i] = p[4 * i + 1] + q[i];
    if (q[i] > 0) return;
    p[4 * i + 2] += p[4 * i + 3];
    q[2 * i] = p[2 * (i / 2)] + p[2 * (i / 2) + 1];
    for (int k = 0; k < n; ++k) { if (k == 3) break; q[2 * k + 1] += p[2 * k] + p[2 * k + 1] * q[2 * k]; }
    p[3 * i] += p[3 * i + 1] + p[3 * i + 2];
}
extern "C" void f(const float* a, const float* b, float* c, int n, int m) {
    int count = n * m < 900 ? n * m : 900;
    move<<<(count + 31) / 32, 32>>>(c + 4096, 0.5f, count);
    move<<<(count + 31) / 32, 32>>>(c + 8193, 0.5f, count);
    energy<<<(n + 31) / 32, 32>>>((const Body*)b, (const Pair*)(c + 12200), (Pair*)(c + 12400), c + 12800, n);
    bytes<<<(n + 31) / 32, 32>>>((const unsigned char*)(c + 13000), (unsigned char*)(c + 13200) + m % 2, (short*)(c + 13500), n);
    hostile<<<1, 1>>>(c + 14000, c + 14300, n);
    for (int shift = 0; shift < 4; ++shift) {
        float* p = c + 15000 + 100 * shift;
        hostile<<<1, 1>>>(p, p + shift, 1);
        hostile<<<1, 1>>>(p + shift, p, m);
    }
}
