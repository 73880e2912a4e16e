// One explicit Euler step. A particle is 8 floats: position, inverse mass, velocity, age.
enum { PX, PY, PZ, INV_MASS, VX, VY, VZ, AGE, FIELDS };

__global__ void step(float *particles, float gx, float gy, float gz, float dt, int count)
{
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p < count) {
        if (particles[p * FIELDS + INV_MASS] > 0.0f) {
            particles[p * FIELDS + VX] += gx * dt;
            particles[p * FIELDS + VY] += gy * dt;
            particles[p * FIELDS + VZ] += gz * dt;
        }
        particles[p * FIELDS + PX] += particles[p * FIELDS + VX] * dt;
        particles[p * FIELDS + PY] += particles[p * FIELDS + VY] * dt;
        particles[p * FIELDS + PZ] += particles[p * FIELDS + VZ] * dt;
        particles[p * FIELDS + AGE] += dt;
    }
}

extern "C" void integrate(float *particles, float gx, float gy, float gz, float dt, int count)
{
    step<<<(count + 127) / 128, 128>>>(particles, gx, gy, gz, dt, count);
}
